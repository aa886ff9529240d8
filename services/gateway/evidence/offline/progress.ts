import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject } from '@plat/core'
import { NO_RECORD } from '@plat/ledger'
import { isMissing } from '@plat/state'
import { putDurably } from './durable.ts'

/** State of the spool beside its segments. */
export interface Progress {
  readonly ledgerId: string
  /** The record before the first one in the spool: all up to it are acknowledged or dropped. */
  readonly base: { readonly seq: number; readonly hash: string }
  /** Records up to this one were sent to a collector. */
  readonly forwarded: number
  /** Records up to this one are acknowledged, and when, in milliseconds since the epoch; -1 and 0 if none are. */
  readonly acked: number
  readonly ackedAt: number
}

export function noProgress(ledgerId: string): Progress {
  return { ledgerId, base: NO_RECORD, forwarded: -1, acked: -1, ackedAt: 0 }
}

const NAME = 'progress.json'

/** Returns null if there is none yet. Throws if it cannot be read. */
export async function readProgress(dir: string): Promise<Progress | null> {
  const path = join(dir, NAME)
  try {
    const progress = decode(JSON.parse(await readFile(path, 'utf8')))
    if (progress !== null) return progress
  } catch (error) {
    if (isMissing(error)) return null
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new Error(`${path} is damaged: remove offline.spoolDir, and the edge seals its ledger again`)
}

export async function writeProgress(dir: string, progress: Progress): Promise<void> {
  await putDurably(join(dir, NAME), JSON.stringify({ version: 1, ...progress }))
}

function decode(value: unknown): Progress | null {
  if (!isObject(value) || value.version !== 1 || !isObject(value.base)) return null
  const { ledgerId, forwarded, acked, ackedAt } = value
  const { seq, hash } = value.base
  if (typeof ledgerId !== 'string' || typeof seq !== 'number' || typeof hash !== 'string') return null
  if (typeof forwarded !== 'number' || typeof acked !== 'number' || typeof ackedAt !== 'number') return null
  return { ledgerId, base: { seq, hash }, forwarded, acked, ackedAt }
}
