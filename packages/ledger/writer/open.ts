import { type Clock, type Ids, rfc3339Micros } from '@plat/core'
import type { Signer } from '@plat/keys'
import { type AppendHandle, type Files, lockPath, systemFiles } from '@plat/state'
import type { Head } from '../format.ts'
import { sourceFilesOver } from '../sequence/files.ts'
import { LedgerSequence } from '../sequence/sequence.ts'
import type { Rec } from '../types.ts'
import { HeadKeeper, type HeadStore, headFile } from './head-file.ts'
import { FileLedger, type LedgerMeter, type UnreadBeginning } from './ledger.ts'
import { asideRecords, mendTail } from './mend.ts'
import { type OpenCalls, unknownOutcome } from './open-calls.ts'
import { readStart, type StartOptions } from './read-start.ts'
import { endOfSegment } from './reading.ts'
import { ResumeKeeper } from './resume-point.ts'
import { FileGrower } from './sealing/grow-file.ts'
import { ListKeeper } from './sealing/list-keeper.ts'
import { OpenIntents } from './sealing/open-intents.ts'
import { sealFile } from './sealing/seal-file.ts'
import { type FileStart, Sealer, type SealingLimits } from './sealing/sealer.ts'

export interface OpenLedgerOptions extends StartOptions {
  /** `''` is the single tenant. */
  readonly tenant: string
  /** Identifies this writer in every record, such as the host name. */
  readonly replica: string
  readonly clock: Clock
  readonly ids: Ids
  readonly meter?: LedgerMeter
  /** Default: the system's file system. */
  readonly files?: Files
  /** Stores of the head outside the ledger; default: `<path>.head`, or none with custom `files`. */
  readonly heads?: readonly HeadStore[]
  /** Signs heads; absent: unsigned. */
  readonly headSigner?: () => Promise<Signer | null>
  /** Called for the first of consecutive failures to store the head. */
  readonly onHeadFault?: (reason: string) => void
  /** When the active file is sealed as a segment; absent: never. */
  readonly sealing?: SealingOptions
  /** Called for each durable record of this run that is neither an intent nor an outcome. Must not throw. */
  readonly onDurable?: (rec: Rec, place: Head) => void
}

export interface SealingOptions extends SealingLimits {
  /**
   * Bytes between resume points in the active file, from which a start reads. Absent: a start reads the whole file. For callers that verify the
   * `unread` part of the ledger later.
   */
  readonly resumeEveryBytes?: number
  /** Lists the sealed segments; default: one without listeners. */
  readonly list?: ListKeeper
  /** Called when sealing failed; another attempt follows. */
  readonly onFault?: (reason: string) => void
}

/** Number of outcomes of lost calls per commit at start. */
const CLOSING_BATCH = 1000

const noMeter: LedgerMeter = { committed() {}, missed() {}, poisoned() {}, recovered() {} }

/**
 * Opens the ledger at `path` for its single writer and creates it if missing: takes the lock, verifies the whole chain, repairs a torn tail (its
 * bytes stay as `<path>.torn-<seq>`), completes the sealing of a segment, and closes calls whose process died as `unknown`. Throws LockedError when
 * another process writes it, and LedgerDamagedError when a line with LF does not verify.
 */
export async function openLedger(options: OpenLedgerOptions): Promise<FileLedger> {
  const { path, clock } = options
  const files = options.files ?? systemFiles
  const release = lockPath(path)
  const list = options.sealing?.list ?? new ListKeeper(path, options.files ?? null, { clock })
  const unlock = () => {
    list.close()
    release()
  }
  let handle: AppendHandle | null = null
  let ledger: FileLedger | null = null
  await using opened = new AsyncDisposableStack()
  try {
    handle = files.openAppend(path)
    const stores = options.heads ?? (options.files === undefined ? [headFile(path)] : [])
    const sequence = opened.use(await LedgerSequence.open(path, sourceFilesOver(files)))
    const resumes = options.sealing?.resumeEveryBytes !== undefined
    const read = await readStart(options, { sequence, handle, files: sourceFilesOver(files), stores, resumes })
    const { ledgerId: known, found, calls, unread } = read
    let { start } = read
    mendTail({ path, handle, files, found })
    const sealed = endOfSegment(handle, found)
    if (sealed !== null) {
      handle.close()
      handle = sealFile({ path, files, first: start.first, isRetry: false, ...sealed })
      start = sealed.next
    }
    // Otherwise each reader would look into the files that are missing in the list.
    if (options.sealing !== undefined && (sealed !== null || !sequence.isListed)) await list.update()
    const ledgerId = known ?? options.ids.uuid()
    ledger = createLedger(options, { list, handle, files, start, head: found.head, unread, unlock, ledgerId, calls })
    // Without a readable genesis there is no ledger id to store a head under.
    if (known !== null || found.head === null) ledger.keepHead(keeperOf(ledger, { ledgerId, stores, options }))
    const records = await asideRecords(path, files, found.head)
    await beginAgain(ledger, { head: found.head, records, ledgerId, clock })
    await closeLost(
      ledger,
      sequence,
      [...calls.intents().values()].sort((a, b) => a - b),
    )
    return ledger
  } catch (error) {
    if (ledger !== null) {
      await ledger.close()
    } else {
      handle?.close()
      unlock()
    }
    throw error
  }
}

interface LedgerParts {
  readonly list: ListKeeper
  readonly handle: AppendHandle
  readonly files: Files
  readonly start: FileStart
  readonly head: Head | null
  readonly unread: UnreadBeginning | null
  readonly unlock: () => void
  readonly ledgerId: string
  readonly calls: OpenCalls
}

function createLedger(options: OpenLedgerOptions, { ledgerId, calls, list, ...parts }: LedgerParts): FileLedger {
  const { path, tenant, replica, clock, sealing, onDurable, meter = noMeter } = options
  const intents = new OpenIntents(calls.intents())
  const onSealed = () => void list.update()
  const ledger = new FileLedger({
    ...{ path, ledgerId, tenant, replica, clock, meter, intents, onSealed, ...parts },
    ...(onDurable !== undefined && { onDurable }),
  })
  if (sealing === undefined || sealing.bytes === 0) return ledger
  const everyBytes = sealing.resumeEveryBytes
  const grower = new FileGrower(options.files ?? null, clock)
  ledger.sealWith(
    new Sealer({
      ...{ path, ledgerId, clock, intents, limits: sealing },
      ...{ grow: grower.grow, onClose: () => grower.close() },
      onReady: () => ledger.seal(),
      onFault: sealing.onFault ?? (() => {}),
    }),
    everyBytes === undefined
      ? null
      : new ResumeKeeper({ path, ledgerId, intents, everyBytes, files: options.files ?? null }),
  )
  return ledger
}

/** Writes the first records of this run: the genesis of a new ledger, and those of bytes that were set aside. */
async function beginAgain(
  ledger: FileLedger,
  run: {
    readonly head: Head | null
    readonly records: readonly Rec[]
    readonly ledgerId: string
    readonly clock: Clock
  },
) {
  const createdAt = rfc3339Micros(run.clock.now())
  const genesis: Rec = { kind: 'config', ledgerId: run.ledgerId, format: 1, createdAt }
  await appendAll(ledger, run.head === null ? [genesis, ...run.records] : run.records)
}

/** Closes calls whose process died, given the numbers of their intents in order; holds the lines of one batch at a time. */
async function closeLost(ledger: FileLedger, sequence: LedgerSequence, intents: readonly number[]): Promise<void> {
  for (let from = 0; from < intents.length; from += CLOSING_BATCH) {
    const batch = intents.slice(from, from + CLOSING_BATCH)
    const outcomes: Rec[] = []
    await sequence.eachLine(batch, (line) => outcomes.push(unknownOutcome(line.toString())))
    if (outcomes.length < batch.length)
      throw new Error(`the ledger lacks intents among records ${batch[0]} to ${batch.at(-1)}`)
    await appendAll(ledger, outcomes)
  }
}

async function appendAll(ledger: FileLedger, records: readonly Rec[]): Promise<void> {
  const appended = Promise.all(records.map((rec) => ledger.append(rec)))
  // Outcomes would linger, and at start nothing else may keep the process alive until their time.
  await Promise.all([appended, ledger.flush()])
}

function keeperOf(
  ledger: FileLedger,
  made: { readonly ledgerId: string; readonly stores: readonly HeadStore[]; readonly options: OpenLedgerOptions },
): HeadKeeper {
  const { clock, headSigner, onHeadFault } = made.options
  return new HeadKeeper({
    ledgerId: made.ledgerId,
    stores: made.stores,
    clock,
    head: () => ledger.head(),
    signer: headSigner ?? (async () => null),
    onFault: onHeadFault ?? (() => {}),
  })
}
