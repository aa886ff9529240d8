import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { isMissing } from '@plat/state'
import { lineOfSeq } from '../find.ts'
import { tailLedger } from '../tail.ts'

/** Beside a ledger: the lines of its checkpoints, to be copied to where nobody can change them. */
export function checkpointsPath(ledgerPath: string): string {
  return `${ledgerPath}.checkpoints`
}

/** Beside a ledger: the public keys of its checkpoints and heads, a JWK set. */
export function keysPath(ledgerPath: string): string {
  return `${ledgerPath}.jwks`
}

/** Beside a ledger: the nodes of its tree. Made from the ledger alone, and made again when it is missing. */
export function treePath(ledgerPath: string): string {
  return `${ledgerPath}.tree`
}

/** A checkpoint's record, where it stands. */
export interface StoredCheckpoint {
  readonly seq: number
  readonly rec: Readonly<Record<string, unknown>>
  /** The line, without its LF. */
  readonly text: string
}

/** The ledger lacks a record that a checkpoint beside it holds: an older or another file stands in its place. */
export class LedgerRolledBackError extends Error {}

/** The last of the checkpoints beside a ledger; null when there is none. */
export async function lastCheckpoint(ledgerPath: string): Promise<StoredCheckpoint | null> {
  try {
    for await (const line of tailLedger(checkpointsPath(ledgerPath), { last: 1 })) return line
    return null
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/**
 * Throws `LedgerRolledBackError` when the ledger does not hold the last checkpoint that stands beside it, byte for byte. No crash does
 * that: a checkpoint is put there once its record is durable.
 */
export async function refuseRolledBack(ledgerPath: string): Promise<void> {
  const last = await lastCheckpoint(ledgerPath)
  if (last === null) return
  const held = await readIfThere(ledgerPath, (file) => lineOfSeq(file, last.seq))
  if (held?.toString() === last.text) return
  const why = held === null ? 'has no record' : 'has another record'
  const beside = checkpointsPath(ledgerPath)
  throw new LedgerRolledBackError(
    `${ledgerPath} ${why} ${last.seq}, which was a checkpoint: an older or another file stands in its place. ` +
      `Put the right one back; to go on with this one all the same, move ${beside} away and keep it as evidence`,
  )
}

/** After a repair that cut the ledger to `records`: what was said of those cut off goes aside with them. */
export async function setKeptAside(ledgerPath: string, records: number): Promise<void> {
  const last = await lastCheckpoint(ledgerPath)
  if (last === null || last.seq < records) return
  await rename(checkpointsPath(ledgerPath), `${checkpointsPath(ledgerPath)}.damaged-${records}`)
  await rm(treePath(ledgerPath), { force: true })
}

/** A checkpoint stands in a line that holds these bytes; in a string they cannot stand. */
const CHECKPOINT_MARK = Buffer.from('"kind":"checkpoint"')

export function isCheckpointLine(line: Buffer): boolean {
  return line.includes(CHECKPOINT_MARK)
}

/** `work` on the open file; null when there is no file. */
export async function readIfThere<T>(path: string, work: (file: FileHandle) => Promise<T>): Promise<T | null> {
  let file: FileHandle
  try {
    file = await open(path, 'r')
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
  try {
    return await work(file)
  } finally {
    await file.close()
  }
}
