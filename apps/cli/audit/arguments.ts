import { readFile } from 'node:fs/promises'
import type { KeyStore } from '@plat/keys'
import { openCapture } from '@plat/ledger'
import { withKeys } from '../shared/keys.ts'
import { CommandError, type Format, type Output } from '../shared/output.ts'

export interface AuditArgumentsOptions {
  /** A file of `captureArgs.dir`. */
  readonly file: string
  /** URI or path of the key that it was captured under. */
  readonly key: string
  readonly output: Format
}

/** Shows the arguments of a call as they were captured: what the redaction left of them. */
export async function auditArguments(
  { file, key, output: format }: AuditArgumentsOptions,
  output: Output,
): Promise<number> {
  const text = await readCapture(file)
  const capture = await withKeys(async (keys) => openCapture(text, await openKey(key, keys)))
  if (capture === null) {
    output.err(`${file}: not a capture, changed since, or under another key than ${key}`)
    return 1
  }
  const { namespace, argsSha256, args } = capture
  const content = Buffer.from(args).toString('utf8')
  output.out(format === 'table' ? content : JSON.stringify({ namespace, argsSha256, args: content }))
  return 0
}

async function readCapture(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch {
    throw new CommandError(
      `${file}: cannot be read; captures are in <captureArgs.dir>/<namespace>/<xx>/<argsSha256>.cap`,
      2,
    )
  }
}

async function openKey(key: string, keys: KeyStore) {
  try {
    return await keys.openCipher(key)
  } catch (error) {
    throw new CommandError(`-key ${error instanceof Error ? error.message : 'cannot be opened'}`, 2)
  }
}
