import { type Clock, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { HoldItem, LocalLimits } from '@plat/state'
import { isHoldOfBatch } from '../../../call/index.ts'
import type { Alerts } from '../alerts.ts'
import { type SavedTotals, writeTotals } from './totals.ts'

export interface KeeperOptions {
  readonly path: string
  readonly everyMs: number
  /** The last record with a position in the ledger. */
  readonly placed: () => SavedTotals['ledger']
  /** Resolves with the last durable record once waiting ones are committed. */
  readonly flushed: () => Promise<SavedTotals['ledger']>
  readonly totalMicros: () => number
  readonly limits: LocalLimits
  readonly alerts: Alerts
  readonly clock: Clock
  readonly log: Log
}

/** Saves the totals periodically while they change, and when the gateway stops. */
export interface Keeper {
  /** Never rejects: without the file a start reads the ledger. */
  save(): Promise<void>
  close(): Promise<void>
}

/**
 * Maintains `finopsStatePath`. A call settles in the same turn of the event loop in which its outcome gets its ledger position, so
 * between turns the totals match the ledger up to that position.
 */
export function keepTotals(options: KeeperOptions): Keeper {
  const { path, everyMs, clock, log } = options
  let savedSeq = -1
  let saving: Promise<void> = Promise.resolve()
  const write = async () => {
    const totals = totalsOf(options)
    if (totals.ledger.seq === savedSeq) return
    try {
      // Totals of records that a crash loses would be those of another ledger.
      if ((await options.flushed()).seq < totals.ledger.seq) return
      await writeTotals(path, totals)
      savedSeq = totals.ledger.seq
    } catch (error) {
      log.warn(
        { path, error: reasonOf(error) },
        'finopsStatePath cannot be written: the next start reads the whole ledger',
      )
    }
  }
  const save = () => {
    saving = saving.then(write)
    return saving
  }
  const stop = clock.every(everyMs, () => void save())
  return {
    save,
    close() {
      stop()
      return save()
    },
  }
}

function totalsOf({ placed, totalMicros, limits, alerts, clock }: KeeperOptions): SavedTotals {
  const at = clock.now()
  return {
    ledger: { seq: placed().seq, hash: placed().hash },
    totalMicros: totalMicros(),
    // Those of batches are taken again by their journal.
    open: limits
      .open()
      .filter(({ id }) => !isHoldOfBatch(id))
      .map(({ id, items }) => ({ call: id, at, items: items.map(plainItem) })),
    told: alerts.sentPercents(),
    counted: [...limits.counted()]
      .filter(({ spent }) => spent > 0)
      .map(({ key, window, spent, usedAt }) => ({ key, window, spent, usedAt })),
  }
}

function plainItem({ key, window, cap, amount, unit }: HoldItem) {
  return { key, window, cap, amount, unit }
}
