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
  /** Ledgers of tenants; absent: there are none. */
  readonly tenantLedgers?: () => readonly TenantPlaces[]
  /** Places in the ledgers of tenants that the totals include, as read at the start: kept while such a ledger is not open. */
  readonly earlier?: SavedTotals['tenants']
  readonly totalMicros: () => number
  readonly limits: LocalLimits
  readonly alerts: Alerts
  readonly clock: Clock
  readonly log: Log
}

/** Places in the ledger of a tenant, as those of the fleet's. */
export interface TenantPlaces {
  readonly tenant: string
  placed(): SavedTotals['ledger']
  flushed(): Promise<SavedTotals['ledger']>
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
  let savedPlaces = ''
  let saving: Promise<void> = Promise.resolve()
  const write = async () => {
    const totals = totalsOf(options)
    const places = JSON.stringify([totals.ledger, totals.tenants])
    if (places === savedPlaces) return
    try {
      // Totals of records that a crash loses would be those of another ledger.
      if (!(await areDurable(totals, options))) return
      await writeTotals(path, totals)
      savedPlaces = places
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

/** Resolves with whether every record that the totals include is durable. */
async function areDurable(
  { ledger, tenants = {} }: SavedTotals,
  { flushed, tenantLedgers }: KeeperOptions,
): Promise<boolean> {
  const durable = async (one: TenantPlaces) => (await one.flushed()).seq >= (tenants[one.tenant]?.seq ?? -1)
  const all = await Promise.all((tenantLedgers?.() ?? []).map(durable))
  return (await flushed()).seq >= ledger.seq && !all.includes(false)
}

function plainPlace({ seq, hash }: SavedTotals['ledger']): SavedTotals['ledger'] {
  return { seq, hash }
}

function totalsOf(options: KeeperOptions): SavedTotals {
  const { placed, tenantLedgers, earlier = {}, totalMicros, limits, alerts, clock } = options
  const at = clock.now()
  const open = (tenantLedgers?.() ?? []).map((one) => [one.tenant, plainPlace(one.placed())] as const)
  const tenants = { ...earlier, ...Object.fromEntries(open) }
  return {
    ledger: plainPlace(placed()),
    ...(Object.keys(tenants).length > 0 && { tenants }),
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
