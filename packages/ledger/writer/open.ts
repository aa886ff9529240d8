import type { Clock, Ids } from '@plat/core'
import { rfc3339Micros } from '@plat/core'
import type { Signer } from '@plat/keys'
import { type AppendHandle, type Files, lockPath, systemFiles } from '@plat/state'
import { Chain, type Damage, followChain } from '../chain.ts'
import { type Head, REC_START } from '../format.ts'
import type { Rec } from '../types.ts'
import { genesisOf } from './genesis.ts'
import { ExpectedHeads, HeadKeeper, type HeadStore, headFile } from './head-file.ts'
import { FileLedger, type LedgerMeter } from './ledger.ts'
import { asideRecords, mendTail } from './mend.ts'
import { OpenCalls, unknownOutcome } from './open-calls.ts'

export interface OpenLedgerOptions {
  readonly path: string
  /** `''` is the single tenant. */
  readonly tenant: string
  /** Names this writer in every record, such as the host's name. */
  readonly replica: string
  readonly clock: Clock
  readonly ids: Ids
  readonly meter?: LedgerMeter
  /** The machine's file system when absent. */
  readonly files?: Files
  /** Where the head is kept outside the ledger; absent: in `<path>.head`, or nowhere with other `files`. */
  readonly heads?: readonly HeadStore[]
  /** What signs heads; absent: nothing does. */
  readonly headSigner?: () => Promise<Signer | null>
  /** The head cannot be kept; called for the first of consecutive failures. */
  readonly onHeadFault?: (reason: string) => void
  /**
   * Sees the bytes of every record that is there already, in order, as the chain is followed, and its place in it: whoever rebuilds from
   * the ledger needs no second pass. The bytes are only good until it returns.
   */
  readonly onRecord?: (record: Buffer, place: Head) => void
}

/** Outcomes of lost calls that wait for one commit at a time at start-up. */
const CLOSING_BATCH = 1000

/** A ledger that is damaged inside: nothing is written after it. */
export class LedgerDamagedError extends Error {
  readonly damage: Damage

  constructor(path: string, damage: Damage) {
    super(
      `${path} is damaged at line ${damage.line} (record ${damage.seq}, byte ${damage.offset}): ${damage.what}. ` +
        `Look with: plat audit verify ${path}; then keep the good part with: plat audit repair ${path}`,
    )
    this.damage = damage
  }
}

const noMeter: LedgerMeter = { committed() {}, missed() {}, poisoned() {}, recovered() {} }

/**
 * Opens the ledger at `path` for its one writer, making it when it is missing: takes the lock, follows the whole chain, repairs
 * a torn tail (its bytes stay as `<path>.torn-<seq>`), and closes calls whose process died as `unknown`.
 * Throws `Locked` when another process writes it and `LedgerDamagedError` when a line with LF does not verify.
 */
export async function openLedger(options: OpenLedgerOptions): Promise<FileLedger> {
  const { path, tenant, replica, clock } = options
  const files = options.files ?? systemFiles
  const unlock = lockPath(path)
  let handle: AppendHandle | null = null
  let ledger: FileLedger | null = null
  try {
    handle = files.openAppend(path)
    const stores = options.heads ?? (options.files === undefined ? [headFile(path)] : [])
    const known = genesisOf(handle)?.ledgerId ?? null
    const expected = await ExpectedHeads.read(path, stores, known)
    const calls = new OpenCalls()
    const found = await followChain({
      source: handle,
      chain: new Chain(null),
      onRecord(buffer, start, line, offset) {
        expected.see(line)
        options.onRecord?.(buffer.subarray(start + REC_START, start + line.recEnd), line)
        return calls.see(buffer, start, line, offset)
      },
    })
    if (found.damage !== null) throw new LedgerDamagedError(path, found.damage)
    expected.check(known, found.head)
    mendTail({ path, handle, files, found })
    const lost = readLines(handle, calls.places())
    const meter = options.meter ?? noMeter
    ledger = new FileLedger({ path, tenant, replica, clock, files, meter, handle, head: found.head, unlock })
    const ledgerId = known ?? options.ids.uuid()
    // A ledger without a readable genesis has no name to keep its head under.
    if (known !== null || found.head === null) ledger.keepHead(keeperOf(ledger, { ledgerId, stores, options }))
    const records = [...(await asideRecords(path, files, found.head)), ...lost.map(unknownOutcome)]
    await beginAgain(ledger, { head: found.head, records, ledgerId, clock })
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

/** The first records of this run: the genesis, or what the last run left open. */
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
  const records = run.head === null ? [genesis, ...run.records] : run.records
  for (let from = 0; from < records.length; from += CLOSING_BATCH) {
    const appended = Promise.all(records.slice(from, from + CLOSING_BATCH).map((rec) => ledger.append(rec)))
    // Outcomes would linger, and at start-up nothing else may keep the process alive until their time is over.
    await Promise.all([appended, ledger.flush()])
  }
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

function readLines(handle: AppendHandle, places: readonly { offset: number; length: number }[]): string[] {
  return places.map(({ offset, length }) => {
    const bytes = Buffer.alloc(length)
    if (handle.read(bytes, offset) !== length) throw new Error('the ledger shrank while it was read')
    return bytes.toString()
  })
}
