import { holdsOf, settledOf } from '@plat/ledger'
import type { HoldItem, LocalLimits } from '@plat/state'
import { type Alerts, BUDGET_THRESHOLD } from '../alerts.ts'
import type { OpenCall, SavedTotals } from './totals.ts'

const KIND = Buffer.from('"kind":"')
const INTENT = 'i'.charCodeAt(0)
const OUTCOME = 'o'.charCodeAt(0)
const ALERT = 'a'.charCodeAt(0)
const ZERO = '0'.charCodeAt(0)
const HOLDS = Buffer.from('"holds":[')
const SETTLED = Buffer.from('"settled":{')
const COST = Buffer.from('"costMicros":')
const THRESHOLD = Buffer.from(`"alert":"${BUDGET_THRESHOLD}"`)
/** Keys whose windows never end. They are recognized without their intent. */
const LIFE_KEY = /^(?:usd|tokens)\/session\//

export interface SpendingParts {
  readonly limits: LocalLimits
  readonly alerts: Pick<Alerts, 'restore'>
  /** Totals up to a record of each ledger, after which records are read. Null: all records are read. */
  readonly saved: SavedTotals | null
}

/**
 * Rebuilds limits, alerts and the metered total while ledgers are opened. Settled amounts are spent; an intent without an outcome, or
 * whose outcome lacks `settled`, is spent whole. Memory is bounded by the calls open at one moment, and most records are not parsed.
 * (Quotes inside strings are escaped, so the markers can only match members; no other kind begins with the same letter and has the
 * marker, and canonical order puts `holds` before `kind` and `settled` after it.)
 */
export class Spending {
  readonly #parts: SpendingParts
  readonly #open = new Map<string, OpenCall>()
  /** By tenant. Records covered by the saved totals are skipped unless these belong to another ledger. */
  readonly #readings = new Map<string, { state: 'before' | 'foreign' | 'reading' }>()
  #isRestored = false
  #totalMicros = 0
  /** Adds one record of the fleet's ledger. Records must come in order. */
  readonly see: (record: Buffer, place: SavedTotals['ledger']) => void

  constructor(parts: SpendingParts) {
    this.#parts = parts
    this.see = this.seeOf('')
  }

  /** Last record of the ledger of a tenant that the saved totals include; null: every record is needed. Empty: the fleet's. */
  sinceOf(tenant: string): SavedTotals['ledger'] | null {
    const { saved } = this.#parts
    return (tenant === '' ? saved?.ledger : saved?.tenants?.[tenant]) ?? null
  }

  /** Last record of the fleet's ledger that the saved totals include; null: every record is needed. */
  get since(): SavedTotals['ledger'] | null {
    return this.sinceOf('')
  }

  /** Places in the ledgers of tenants that the saved totals include. */
  get earlier(): SavedTotals['tenants'] {
    return this.#parts.saved?.tenants
  }

  /**
   * Whether the saved totals belong to other ledgers or cover lost records, so that the ledgers must be read again. Valid after the last
   * record.
   */
  get mustReadAgain(): boolean {
    return this.#readings.values().some(({ state }) => state !== 'reading')
  }

  /** The same of the ledger of a tenant. */
  seeOf(tenant: string): Spending['see'] {
    const since = this.sinceOf(tenant)
    const reading = this.#readings.getOrInsertComputed(tenant, () => ({
      state: since === null ? ('reading' as const) : ('before' as const),
    }))
    return (record, place) => {
      if (reading.state === 'reading') this.#read(record)
      else if (since !== null && reading.state === 'before' && place.seq >= since.seq) {
        reading.state = place.hash === since.hash ? 'reading' : 'foreign'
        if (reading.state === 'reading') this.#restore()
      }
    }
  }

  #read(record: Buffer): void {
    const kind = record.indexOf(KIND)
    const initial = record[kind + KIND.length]
    if (initial === INTENT) {
      if (record.subarray(0, kind).includes(HOLDS)) this.#begin(readRecord(record))
    } else if (initial === OUTCOME) {
      const cost = record.indexOf(COST)
      const costs = cost >= 0 && record[cost + COST.length] !== ZERO
      if (costs || this.#open.size > 0 || record.includes(SETTLED, kind)) this.#end(readRecord(record))
    } else if (initial === ALERT && record.includes(THRESHOLD)) this.#alert(readRecord(record))
  }

  /** Counts open intents as spent. Call once, after the last record. Returns the total ever metered, in micro-units. */
  finish(): number {
    for (const { items, at } of this.#open.values()) this.#totalMicros += this.#count(items, new Map(), at)
    this.#open.clear()
    return this.#totalMicros
  }

  /** Once, whichever ledger is met first. */
  #restore(): void {
    const { saved, limits, alerts } = this.#parts
    if (saved === null || this.#isRestored) return
    this.#isRestored = true
    this.#totalMicros += saved.totalMicros
    for (const { key, window, spent, usedAt } of saved.counted) limits.restore({ key, window }, spent, usedAt)
    for (const call of saved.open) this.#open.set(call.call, call)
    for (const { key, window, percents } of saved.told)
      for (const percent of percents) alerts.restore(key, window, percent)
  }

  #begin(rec: Readonly<Record<string, unknown>>): void {
    if (typeof rec.call !== 'string') return
    this.#open.set(rec.call, { call: rec.call, items: holdsOf(rec), at: timeOf(rec) })
  }

  #end(rec: Readonly<Record<string, unknown>>): void {
    const settled = settledOf(rec) ?? new Map<string, number>()
    const call = typeof rec.call === 'string' ? rec.call : ''
    const items = this.#open.get(call)?.items ?? withoutIntent(settled)
    this.#open.delete(call)
    const spent = this.#count(items, settled, timeOf(rec))
    this.#totalMicros += typeof rec.costMicros === 'number' ? rec.costMicros : spent
  }

  #alert({ key, window, percent }: Readonly<Record<string, unknown>>): void {
    if (typeof key !== 'string' || typeof window !== 'string' || typeof percent !== 'number') return
    this.#parts.alerts.restore(key, window, percent)
  }

  /** Returns the money counted, in micro-units. */
  #count(items: readonly HoldItem[], settled: ReadonlyMap<string, number>, at: number): number {
    let money = 0
    for (const item of items) {
      const spent = settled.get(item.key) ?? item.amount
      this.#parts.limits.restore(item, spent, at)
      if (item.unit === 'micros') money = Math.max(money, spent)
    }
    return money
  }
}

/** Items of a call whose intent could not be written (`auditFailurePolicy` `open`). */
function withoutIntent(settled: ReadonlyMap<string, number>): readonly HoldItem[] {
  return [...settled]
    .filter(([key]) => LIFE_KEY.test(key))
    .map(([key, amount]) => ({ key, window: 'life', cap: amount, amount, unit: unitOf(key) }))
}

function unitOf(key: string): HoldItem['unit'] {
  return key.startsWith('usd/') ? 'micros' : 'tokens'
}

function readRecord(record: Buffer): Readonly<Record<string, unknown>> {
  return JSON.parse(record.toString())
}

function timeOf(rec: Readonly<Record<string, unknown>>): number {
  return typeof rec.at === 'string' ? Date.parse(rec.at) : 0
}
