import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { isMissing } from '@plat/state'
import { lineAt, readerOf, startOfLast } from '../find.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import { readLine } from '../tail.ts'

/** File of checkpoint lines beside a ledger, to be copied to write-protected storage. */
export function checkpointsPath(ledgerPath: string): string {
  return `${ledgerPath}.checkpoints`
}

/** File of the public keys of checkpoints and heads beside a ledger, a JWK set. */
export function keysPath(ledgerPath: string): string {
  return `${ledgerPath}.jwks`
}

/** File of the tree nodes beside a ledger, rebuilt from the ledger when it is missing. */
export function treePath(ledgerPath: string): string {
  return `${ledgerPath}.tree`
}

export interface StoredCheckpoint {
  readonly seq: number
  readonly rec: Readonly<Record<string, unknown>>
  /** The line, without its LF. */
  readonly text: string
}

/** The ledger lacks a record of a checkpoint beside it: it was replaced by an older or another file. */
export class LedgerRolledBackError extends Error {}

/** Returns the last checkpoint beside a ledger; null when there is none. */
export async function lastCheckpoint(ledgerPath: string): Promise<StoredCheckpoint | null> {
  const path = checkpointsPath(ledgerPath)
  return await readIfThere(path, async (file) => {
    const source = readerOf(file)
    const start = await startOfLast(source, 1, { from: 0, to: (await file.stat()).size })
    const line = await lineAt(source, start)
    return line === null ? null : readLine(line.toString(), path, start)
  })
}

/**
 * Throws LedgerRolledBackError when the ledger does not contain the last checkpoint beside it, byte for byte. A crash cannot cause that: a
 * checkpoint is copied once its record is durable.
 */
export async function refuseRolledBack(ledgerPath: string): Promise<void> {
  const last = await lastCheckpoint(ledgerPath)
  if (last === null) return
  const held = await lineIn(ledgerPath, last.seq)
  if (held?.toString() === last.text) return
  const why = held === null ? 'has no record' : 'has another record'
  const beside = checkpointsPath(ledgerPath)
  throw new LedgerRolledBackError(
    `${ledgerPath} ${why} ${last.seq}, which was a checkpoint: it was replaced by an older or another file. ` +
      `Put the right one back; to go on with this one all the same, move ${beside} away and keep it as evidence`,
  )
}

/** Returns the line of a record; null when it or the ledger does not exist. */
async function lineIn(ledgerPath: string, seq: number): Promise<Buffer | null> {
  try {
    await using sequence = await LedgerSequence.open(ledgerPath)
    return (await sequence.lineOf(seq))?.line ?? null
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** Before a repair cuts the ledger to `records`, sets the files about removed records aside. */
export async function setKeptAside(ledgerPath: string, records: number): Promise<void> {
  const last = await lastCheckpoint(ledgerPath)
  if (last === null || last.seq < records) return
  // The rename comes last: after a crash before it, the next repair finds both files, or one.
  await rm(treePath(ledgerPath), { force: true })
  await rename(checkpointsPath(ledgerPath), `${checkpointsPath(ledgerPath)}.damaged-${records}`)
}

/** Occurs in every checkpoint line; cannot occur inside a string. */
const CHECKPOINT_MARK = Buffer.from('"kind":"checkpoint"')

export function isCheckpointLine(line: Buffer): boolean {
  return line.includes(CHECKPOINT_MARK)
}

/** Calls `work` with the open file; returns null when the file does not exist. */
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
