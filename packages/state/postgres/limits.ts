import { checkItems, joined, settledBy } from '../limits/items.ts'
import type { Hold, HoldItem, Limits, Overrun, Short } from '../limits/limits.ts'
import type { Counted } from '../limits/local-limits.ts'
import { windowEnd } from '../limits/window.ts'
import type { Answer, Counting, StoredItem } from './counting.ts'
import { storedText, textOf } from './database.ts'

/** Counted keys that one question answers at most. */
const COUNTED_MAX = 10_000

export interface SharedLimitsOptions {
  /** Told of each call that cost more than was held for it. */
  readonly onOverrun?: (overrun: Overrun) => void
  /** Told after each amount that was spent of a hold: the item, what is spent of its key and window in all by now, and before it. */
  readonly onSpent?: (item: HoldItem, spent: number, before: number) => void
  /** IANA zone of windows that are days and months; UTC where it is left out. */
  readonly zone?: string
}

/**
 * Limits that all replicas count together, in Postgres: a take is one step there, whoever else takes. Rejects with `StateUnreachable`
 * while the server is away. A hold whose replica is gone counts as spent whole, which leaves as much of the cap as before.
 */
export class SharedLimits implements Limits {
  readonly #counting: Counting
  readonly #options: SharedLimitsOptions

  constructor(counting: Counting, options: SharedLimitsOptions) {
    this.#counting = counting
    this.#options = options
  }

  async take(id: string, items: readonly HoldItem[], expiresAt: number): Promise<Hold | Short> {
    checkItems(items)
    const { zone } = this.#options
    const question = {
      do: 'take',
      id: storedText(id),
      until: Math.ceil(expiresAt),
      taken: JSON.stringify(items.map(({ key, window, amount }) => [storedText(key), window, amount])),
      items: items.map((item) => storedItem(item, zone)),
    } as const
    const hold = new SharedHold({ id, items, counting: this.#counting, options: this.#options })
    let answer: Answer
    try {
      answer = await this.#counting.ask(question)
    } catch (error) {
      // Nobody knows whether it was taken: then it is given back, as soon as somebody can be asked.
      void hold.release()
      throw error
    }
    if (answer.same === false) throw new RangeError(`hold ${id} is open with other items`)
    return shortOf(answer, items, zone) ?? hold
  }

  async used(key: string, window: string): Promise<{ spent: number; held: number }> {
    const answer = await this.#counting.ask({ do: 'used', k: storedText(key), w: window })
    return { spent: numberOf(answer, 'spent'), held: numberOf(answer, 'held') }
  }

  /** All that is counted of keys that begin so, in their order; the first 10,000. */
  async counted(prefix: string): Promise<readonly Counted[]> {
    const { database } = this.#counting
    const rows = await database.rows<{ key: string; win: string; spent: string; held: string; used_at: string }>(
      `SELECT key, win, spent, held, used_at FROM ${database.schema}.counter
         WHERE starts_with(key, $1) AND spent + held > 0 ORDER BY key, win LIMIT ${COUNTED_MAX}`,
      [storedText(prefix)],
    )
    return rows.map(({ key, win, spent, held, used_at }) => ({
      key: textOf(key),
      window: win,
      spent: Number(spent),
      held: Number(held),
      usedAt: Number(used_at),
    }))
  }
}

interface SharedHoldParts {
  readonly id: string
  readonly items: readonly HoldItem[]
  readonly counting: Counting
  readonly options: SharedLimitsOptions
}

class SharedHold implements Hold {
  readonly id: string
  readonly #counting: Counting
  readonly #options: SharedLimitsOptions
  #items: readonly HoldItem[]
  #grown = 0
  #settled: ReadonlyMap<string, number> | null = null

  constructor({ id, items, counting, options }: SharedHoldParts) {
    this.id = id
    this.#items = items
    this.#counting = counting
    this.#options = options
  }

  get items(): readonly HoldItem[] {
    return this.#items
  }

  get settled(): ReadonlyMap<string, number> | null {
    return this.#settled
  }

  async extend(more: readonly HoldItem[]): Promise<Short | null> {
    checkItems(more)
    const { zone } = this.#options
    const items = joined(this.#items, more)
    const answer = await this.#counting.ask({
      do: 'extend',
      id: storedText(this.id),
      grown: this.#grown + 1,
      more: more.map((item) => storedItem(item, zone)),
      items: items.map((item) => storedItem(item, zone)),
    })
    if (answer.over === true || this.#settled !== null) throw new Error(`hold ${this.id} is over`)
    const short = shortOf(answer, more, zone)
    if (short !== null) return short
    this.#grown++
    this.#items = items
    return null
  }

  /** Resolves when it is counted, or will be as soon as the server is there again. */
  async settle(actual: ReadonlyMap<string, number>): Promise<void> {
    if (this.#settled !== null) return
    const items = this.#items
    this.#settled = settledBy(items, actual)
    const spent = Object.fromEntries([...actual].map(([key, amount]) => [storedText(key), amount]))
    const answer = await this.#counting.owe({ do: 'settle', id: storedText(this.id), spent })
    const { onOverrun, onSpent } = this.#options
    for (const [at, item] of items.entries()) {
      const amount = actual.get(item.key) ?? item.amount
      if (amount > item.amount) onOverrun?.({ id: this.id, key: item.key, held: item.amount, spent: amount })
      const total = answer?.spent?.[at]
      if (total !== undefined) onSpent?.(item, total, total - amount)
    }
  }

  release(): Promise<void> {
    return this.settle(new Map(this.#items.map(({ key }) => [key, 0])))
  }
}

function storedItem({ key, window, amount, cap }: HoldItem, zone: string | undefined): StoredItem {
  return { k: storedText(key), w: window, a: amount, c: cap, e: windowEnd(window, zone) }
}

function shortOf({ short, left }: Answer, items: readonly HoldItem[], zone: string | undefined): Short | null {
  const item = short === undefined ? undefined : items[short]
  if (item === undefined) return null
  return { kind: 'short', key: item.key, left: left ?? 0, resetsAt: windowEnd(item.window, zone) }
}

function numberOf(answer: object, name: string): number {
  const value: unknown = Reflect.get(answer, name)
  return typeof value === 'number' ? value : 0
}
