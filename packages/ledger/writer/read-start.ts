import type { AppendHandle } from '@plat/state'
import { type Followed, followChain } from '../chain.ts'
import { type Head, type RawLine, REC_START } from '../format.ts'
import type { SourceFiles } from '../sequence/files.ts'
import { openCallsOf } from '../sequence/open-call-records.ts'
import type { LedgerSequence } from '../sequence/sequence.ts'
import { genesisOf } from './genesis.ts'
import { ExpectedHeads, type HeadStore } from './head-file.ts'
import type { UnreadBeginning } from './ledger.ts'
import { OpenCalls } from './open-calls.ts'
import { endOfSealed, followSealed, LedgerDamagedError, planReading, startIn } from './reading.ts'
import { findResumePoint } from './resume-point.ts'
import type { FileStart } from './sealing/sealer.ts'

export interface StartOptions {
  readonly path: string
  /**
   * First record to read: the last one whose effects the caller has saved, or `active` for the last resume point, from which on the ledger is always
   * read. Records before it are neither read nor verified. Absent: the whole ledger is read.
   */
  readonly since?: Head | 'active'
  /**
   * Called with the bytes and place of every record that is read, in order, while the chain is verified, so that rebuilding state needs no second pass.
   * If the ledger does not hold `since`, this is seen by the places: the first one is another one. The bytes are valid only during the call.
   */
  readonly onRecord?: (record: Buffer, place: Head) => void
}

/** A ledger as a start found it. */
export interface StartRead {
  /** Null for a ledger without a readable genesis and segments. */
  readonly ledgerId: string | null
  readonly start: FileStart
  /** The active file, from where reading began. */
  readonly found: Followed
  /** Calls without an outcome at the end of the ledger. */
  readonly calls: OpenCalls
  readonly unread: UnreadBeginning | null
}

/**
 * Reads and verifies a ledger from `since` on, or from the last resume point or the beginning of the active file if that is earlier. Throws LedgerDamagedError, and
 * LedgerRolledBackError when the ledger lacks a stored head.
 */
export async function readStart(
  options: StartOptions,
  from: {
    readonly sequence: LedgerSequence
    readonly handle: AppendHandle
    readonly files: SourceFiles
    readonly stores: readonly HeadStore[]
    /** Reading may begin at a resume point. */
    readonly resumes: boolean
  },
): Promise<StartRead> {
  const { path, since } = options
  const { sequence, handle, files, stores } = from
  const { ledgerId: stated, start, record } = await endOfSealed(sequence)
  const ledgerId = stated ?? genesisOf(handle)?.ledgerId ?? null
  const expected = await ExpectedHeads.read(path, stores, ledgerId)
  const { first } = start
  const mayResume = since !== undefined && from.resumes
  const point = mayResume ? await findResumePoint(path, files, { sequence, ledgerId, first }) : null
  const open = point?.open ?? (record === null ? [] : await openCallsOf(record, sequence))
  const calls = await OpenCalls.from(sequence, open)
  const callsFrom = point === null ? first : point.seq + 1
  const onRecord = (buffer: Buffer, at: number, line: RawLine): null => {
    expected.see(line)
    options.onRecord?.(buffer.subarray(at + REC_START, at + line.recEnd), line)
    return line.seq < callsFrom ? null : calls.see(buffer, at, line)
  }
  const reading = await planReading(sequence, since, point)
  await expected.lookUp(sequence, reading.chain.next)
  await followSealed(sequence, reading, onRecord)
  const { offset, unread } = startIn(sequence, reading)
  const skipped = reading.chain.next - first
  const found = await followChain({ source: handle, chain: reading.chain, from: offset, onRecord })
  const { damage } = found
  if (damage !== null) throw new LedgerDamagedError(path, { ...damage, line: skipped + damage.line })
  expected.check(ledgerId, found.head)
  return { ledgerId, start, found, calls, unread }
}
