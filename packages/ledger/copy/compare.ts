import { isObject } from '@plat/core'
import { isMissing } from '@plat/state'
import { lastLine, lineAt, seqOf } from '../find.ts'
import { type Head, readRawLine } from '../format.ts'
import { readSegmentLine } from '../sequence/segment-record.ts'
import { ArchivedError, LedgerSequence } from '../sequence/sequence.ts'

/** A ledger on this disk. */
export interface LocalLedger {
  /** Null when its first record is unreadable. */
  readonly ledgerId: string | null
  /** Its last record whose line is complete, or -1. */
  readonly last: number
}

/** Returns the ledger at a path; null when there is none, or an empty file. */
export async function localLedger(path: string): Promise<LocalLedger | null> {
  try {
    await using sequence = await LedgerSequence.open(path)
    const size = await sequence.size()
    if (size === 0) return null
    const sealed = await sequence.lastSealed()
    const record = sealed === null ? null : readSegmentLine(Buffer.from(sealed.record))
    const active = (await lastIn(sequence, size)) ?? sealed?.last ?? -1
    return { ledgerId: record?.ledgerId ?? (await genesisId(sequence)), last: active }
  } catch (error) {
    if (isMissing(error)) return null
    throw error
  }
}

/** Returns why the ledger at a path does not continue this record of its copy, or null. */
export async function whyDiverged(path: string, { last }: LocalLedger, copy: Head): Promise<string | null> {
  if (copy.seq < 0) return null
  if (last < copy.seq) return `it ends at record ${last}`
  await using sequence = await LedgerSequence.open(path)
  try {
    const found = await sequence.lineOf(copy.seq)
    const line = found === null ? 'it is missing' : readRawLine(found.line, 0, found.line.length)
    if (typeof line === 'string') return `its record ${copy.seq} is damaged: ${line}`
    return line.hash === copy.hash ? null : `its record ${copy.seq} has hash ${line.hash}`
  } catch (error) {
    if (!(error instanceof ArchivedError)) throw error
    // Of a segment that left, only the last record is known here.
    const place = readSegmentLine(Buffer.from(error.segment.record))?.place
    const isOther = place?.seq === copy.seq && place.hash !== copy.hash
    return isOther ? `its record ${copy.seq} has hash ${place.hash}` : null
  }
}

/** A torn tail is behind the last complete line. */
async function lastIn(sequence: LedgerSequence, size: number): Promise<number | null> {
  const part = sequence.parts.at(-1)
  const from = part?.offset ?? 0
  const source = { read: (target: Uint8Array, position: number) => sequence.read(target, from + position) }
  for (let end = size - from; end > 0; ) {
    const line = await lastLine(source, end)
    if (line !== null) return seqOf(line)
    end = await endOfLines(source, end)
  }
  return null
}

const BLOCK_BYTES = 4096
const LF = 0x0a

/** Returns the position after the last LF before `end`; 0 when there is none. */
async function endOfLines(
  source: { read(target: Uint8Array, position: number): Promise<number> },
  end: number,
): Promise<number> {
  for (let to = end - 1; to > 0; to -= BLOCK_BYTES) {
    const from = Math.max(0, to - BLOCK_BYTES)
    const block = Buffer.alloc(to - from)
    const count = await source.read(block, from)
    const lf = block.subarray(0, count).lastIndexOf(LF)
    if (lf !== -1) return from + lf + 1
  }
  return 0
}

async function genesisId(sequence: LedgerSequence): Promise<string | null> {
  const line = await lineAt(sequence, 0)
  try {
    const value: unknown = JSON.parse(line?.toString() ?? '')
    return isObject(value) && isObject(value.rec) && typeof value.rec.ledgerId === 'string' ? value.rec.ledgerId : null
  } catch {
    return null
  }
}
