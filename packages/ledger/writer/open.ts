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
  /**
   * Called with the bytes and place of every existing record in order while the chain is verified, so that rebuilding state needs no second pass.
   * The bytes are valid only during the call.
   */
  readonly onRecord?: (record: Buffer, place: Head) => void
}

/** Number of outcomes of lost calls per commit at start. */
const CLOSING_BATCH = 1000

/** A ledger is damaged inside: it must not be extended. */
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
 * Opens the ledger at `path` for its single writer and creates it if missing: takes the lock, verifies the whole chain, repairs a torn tail (its
 * bytes stay as `<path>.torn-<seq>`), and closes calls whose process died as `unknown`. Throws LockedError when another process writes it, and
 * LedgerDamagedError when a line with LF does not verify.
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
    // Without a readable genesis there is no ledger id to store a head under.
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

/** Writes the first records of this run: the genesis, or outcomes of lost calls. */
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
    // Outcomes would linger, and at start nothing else may keep the process alive until their time.
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
