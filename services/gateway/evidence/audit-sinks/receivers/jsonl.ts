import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { SinkConfig } from '../config.ts'
import { formatOf } from '../formats/format.ts'
import type { Receiver } from './receiver.ts'

const LF = 0x0a
/** Records describe what agents did: only the owner may read them. */
const FILE_MODE = 0o600
const FOLDER_MODE = 0o700

/**
 * A file that another program follows. It is opened for each delivery, so that it may be moved away at any time. A line truncated by a
 * crash or a full disk is terminated, and then repeated as a whole.
 */
export function jsonlReceiver(config: SinkConfig): Receiver {
  const { path, format = 'json' } = config
  return {
    write: formatOf(format, config),
    async deliver(batch) {
      await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE })
      await appendLines(path, batch.map(({ text }) => `${text}\n`).join(''))
      return { kind: 'accepted' }
    },
  }
}

/** Appends whole lines; resolves when they are on disk. */
export async function appendLines(path: string, lines: string): Promise<void> {
  await using file = await open(path, 'a+', FILE_MODE)
  const { size } = await file.stat()
  const last = Buffer.alloc(1)
  if (size > 0) await file.read(last, 0, 1, size - 1)
  const begin = size > 0 && last[0] !== LF ? '\n' : ''
  await file.appendFile(begin + lines)
  await file.datasync()
}
