import { holdsOf, settledOf } from '@plat/ledger'
import type { HoldItem, LocalLimits } from '@plat/state'

const KIND = Buffer.from('"kind":"')
const INTENT = 'i'.charCodeAt(0)
const OUTCOME = 'o'.charCodeAt(0)
const ZERO = '0'.charCodeAt(0)
const HOLDS = Buffer.from('"holds":[')
const SETTLED = Buffer.from('"settled":{')
const COST = Buffer.from('"costMicros":')
/** Keys of which the windows never end: known without their intent. */
const LIFE_KEY = /^usd\/session\//

/**
 * Rebuilds limits and the metered total from a ledger while it is opened: what outcomes settled is spent, and an intent without an
 * outcome, or whose outcome does not say, is spent whole. Keeps what is held by the calls that are open at one moment; most records
 * are not parsed. (A quote inside a string is escaped, so the marks can only be members; no kind but these two begins with their letter,
 * and canonical order puts `holds` before `kind` and `settled` after it.)
 */
export class Spending {
  readonly #limits: LocalLimits
  readonly #open = new Map<string, { readonly items: readonly HoldItem[]; readonly at: number }>()
  #totalMicros = 0

  constructor(limits: LocalLimits) {
    this.#limits = limits
  }

  /** One record of the ledger, in order. */
  readonly see = (record: Buffer): void => {
    const kind = record.indexOf(KIND)
    const initial = record[kind + KIND.length]
    if (initial === INTENT) {
      if (record.subarray(0, kind).includes(HOLDS)) this.#begin(readRecord(record))
    } else if (initial === OUTCOME) {
      const cost = record.indexOf(COST)
      const costs = cost >= 0 && record[cost + COST.length] !== ZERO
      if (costs || this.#open.size > 0 || record.includes(SETTLED, kind)) this.#end(readRecord(record))
    }
  }

  /** Call once, after the last record: counts what is still open as spent. Answers all that was ever metered, in micro-units. */
  finish(): number {
    for (const { items, at } of this.#open.values()) this.#totalMicros += this.#count(items, new Map(), at)
    this.#open.clear()
    return this.#totalMicros
  }

  #begin(rec: Readonly<Record<string, unknown>>): void {
    if (typeof rec.call === 'string') this.#open.set(rec.call, { items: holdsOf(rec), at: timeOf(rec) })
  }

  #end(rec: Readonly<Record<string, unknown>>): void {
    const settled = settledOf(rec) ?? new Map<string, number>()
    const call = typeof rec.call === 'string' ? rec.call : ''
    const items = this.#open.get(call)?.items ?? withoutIntent(settled)
    this.#open.delete(call)
    const spent = this.#count(items, settled, timeOf(rec))
    this.#totalMicros += typeof rec.costMicros === 'number' ? rec.costMicros : spent
  }

  /** Answers the money among it, in micro-units. */
  #count(items: readonly HoldItem[], settled: ReadonlyMap<string, number>, at: number): number {
    let money = 0
    for (const item of items) {
      const spent = settled.get(item.key) ?? item.amount
      this.#limits.restore(item, spent, at)
      if (item.unit === 'micros') money = Math.max(money, spent)
    }
    return money
  }
}

/** The intent could not be written, and the call went on all the same (`auditFailurePolicy` `open`). */
function withoutIntent(settled: ReadonlyMap<string, number>): readonly HoldItem[] {
  return [...settled]
    .filter(([key]) => LIFE_KEY.test(key))
    .map(([key, amount]) => ({ key, window: 'life', cap: amount, amount, unit: 'micros' }))
}

function readRecord(record: Buffer): Readonly<Record<string, unknown>> {
  return JSON.parse(record.toString())
}

function timeOf(rec: Readonly<Record<string, unknown>>): number {
  return typeof rec.at === 'string' ? Date.parse(rec.at) : 0
}
