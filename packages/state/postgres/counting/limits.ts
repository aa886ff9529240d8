import { type PoolCaller, SharedPool } from '@plat/core'
import { checkItems, joined, settledBy } from '../../limits/items.ts'
import {
  type Hold,
  type HoldItem,
  isShort,
  type Limits,
  type Overrun,
  PoolFullError,
  type Short,
} from '../../limits/limits.ts'
import type { Counted } from '../../limits/local-limits.ts'
import { windowEnd } from '../../limits/window.ts'
import { storedText, textOf } from '../database.ts'
import type { Counting } from './counting.ts'
import { type Counted as CountResult, NotCountedError, type StoredItem } from './operation.ts'

/** Maximum number of counters in one result. */
const COUNTED_MAX = 10_000

export interface SharedLimitsOptions {
  /** Called for each call that cost more than its hold. */
  readonly onOverrun?: (overrun: Overrun) => void
  /** Called after each amount spent of a hold, with the item and the totals spent of its key and window after and before it. */
  readonly onSpent?: (item: HoldItem, spent: number, before: number) => void
  /** IANA zone of day and month windows; default UTC. */
  readonly zone?: string
  /** Open holds of this replica. Default: the row of the pool. */
  readonly holds?: SharedPool
}

/**
 * Limits shared by all replicas, in Postgres: a take is one atomic step there. Rejects with StateUnreachableError while the server is unreachable. A
 * hold whose replica is gone counts as spent in full, so the cap is never exceeded.
 */
export class SharedLimits implements Limits {
  readonly #counting: Counting
  readonly #options: SharedLimitsOptions
  readonly #holds: SharedPool
  /** Units of the pool by the id of their hold, which belongs to its last take. */
  readonly #units = new Map<string, Unit>()

  constructor(counting: Counting, options: SharedLimitsOptions) {
    this.#counting = counting
    this.#options = options
    this.#holds = options.holds ?? new SharedPool({ name: 'open_holds' })
  }

  async take(
    id: string,
    items: readonly HoldItem[],
    expiresAt: number,
    caller: PoolCaller = '',
  ): Promise<Hold | Short> {
    checkItems(items)
    const bound = this.#holds.acquire(caller)
    if (bound !== null) throw new PoolFullError('holds are open', bound)
    const unit = { caller }
    let isHeld = false
    try {
      const taken = await this.#take(id, items, { expiresAt, unit })
      isHeld = !isShort(taken)
      return taken
    } finally {
      if (isHeld) this.#keep(id, unit)
      else this.#holds.release(caller)
    }
  }

  #keep(id: string, unit: Unit): void {
    const earlier = this.#units.get(id)
    if (earlier !== undefined) this.#holds.release(earlier.caller)
    this.#units.set(id, unit)
  }

  #release(id: string, unit: Unit): void {
    if (this.#units.get(id) !== unit) return
    this.#units.delete(id)
    this.#holds.release(unit.caller)
  }

  async #take(
    id: string,
    items: readonly HoldItem[],
    { expiresAt, unit }: { readonly expiresAt: number; readonly unit: Unit },
  ): Promise<Hold | Short> {
    const { zone } = this.#options
    const ref = this.#counting.nextRef()
    const { caller } = unit
    const onSettled = () => this.#release(id, unit)
    const hold = new SharedHold({ id, ref, items, caller, onSettled, counting: this.#counting, options: this.#options })
    const operation = {
      do: 'take',
      id: storedText(id),
      ref,
      ttl: Math.ceil(expiresAt - this.now()),
      taken: JSON.stringify(items.map(({ key, window, amount }) => [storedText(key), window, amount])),
      items: items.map((item) => storedItem(item, zone)),
    } as const
    let result: CountResult
    try {
      result = await this.#counting.ask(operation, caller)
    } catch (error) {
      // The take may still be counted, even after the release, which leaves a tombstone for that.
      if (error instanceof NotCountedError && error.wasSent) void hold.releaseUnsure()
      throw error
    }
    if (result.same === false) throw new RangeError(`hold ${id} is open with other items`)
    if (result.over === true) throw new NotCountedError('the reservation came too late', false)
    return shortOf(result, items, zone) ?? hold
  }

  now(): number {
    return this.#counting.serverClock.now()
  }

  async used(key: string, window: string): Promise<{ spent: number; held: number }> {
    const { database } = this.#counting
    const [row] = await database.again<{ spent: string | null; held: string | null }>(
      `SELECT spent, held FROM ${database.schema}.used($1, $2)`,
      [storedText(key), window],
    )
    return { spent: Number(row?.spent ?? 0), held: Number(row?.held ?? 0) }
  }

  /** Returns the counters whose keys have the prefix, in order of their keys; at most 10,000. */
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

/** One unit of the pool of open holds. */
interface Unit {
  readonly caller: PoolCaller
}

interface SharedHoldParts {
  readonly id: string
  readonly ref: string
  readonly items: readonly HoldItem[]
  readonly caller: PoolCaller
  readonly counting: Counting
  readonly options: SharedLimitsOptions
  /** Called once, when it is settled. */
  onSettled(): void
}

class SharedHold implements Hold {
  readonly id: string
  readonly #ref: string
  readonly #caller: PoolCaller
  readonly #counting: Counting
  readonly #options: SharedLimitsOptions
  readonly #onSettled: () => void
  #items: readonly HoldItem[]
  #grown = 0
  #settled: ReadonlyMap<string, number> | null = null

  constructor({ id, ref, items, caller, counting, options, onSettled }: SharedHoldParts) {
    this.id = id
    this.#caller = caller
    this.#onSettled = onSettled
    this.#ref = ref
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
    const operation = {
      do: 'extend',
      id: storedText(this.id),
      ref: this.#ref,
      grown: this.#grown + 1,
      more: more.map((item) => storedItem(item, zone)),
      items: items.map((item) => storedItem(item, zone)),
    } as const
    const answer = await this.#counting.ask(operation, this.#caller)
    if (answer.over === true || this.#settled !== null) throw new Error(`hold ${this.id} is over`)
    const short = shortOf(answer, more, zone)
    if (short !== null) return short
    this.#grown++
    this.#items = items
    return null
  }

  /** Resolves when it is counted, or will be as soon as the server is reachable. */
  settle(actual: ReadonlyMap<string, number>): Promise<void> {
    if (this.#settled === null) this.#onSettled()
    return this.#settle(actual, false)
  }

  release(): Promise<void> {
    return this.settle(this.#nothing)
  }

  /** Releases a take that may or may not have been counted. */
  releaseUnsure(): Promise<void> {
    return this.#settle(this.#nothing, true)
  }

  get #nothing(): ReadonlyMap<string, number> {
    return new Map(this.#items.map(({ key }) => [key, 0]))
  }

  async #settle(actual: ReadonlyMap<string, number>, unsure: boolean): Promise<void> {
    if (this.#settled !== null) return
    const items = this.#items
    this.#settled = settledBy(items, actual)
    const spent = Object.fromEntries([...actual].map(([key, amount]) => [storedText(key), amount]))
    const { onOverrun, onSpent, zone } = this.#options
    const answer = await this.#counting.owe({
      do: 'settle',
      id: storedText(this.id),
      ref: this.#ref,
      spent,
      items: items.map((item) => storedItem(item, zone)),
      unsure,
    })
    for (const [at, item] of items.entries()) {
      const amount = actual.get(item.key) ?? item.amount
      if (amount > item.amount) onOverrun?.({ id: this.id, key: item.key, held: item.amount, spent: amount })
      const total = answer?.spent?.[at]
      if (total !== undefined) onSpent?.(item, total, total - amount)
    }
  }
}

function storedItem({ key, window, amount, cap }: HoldItem, zone: string | undefined): StoredItem {
  return { k: storedText(key), w: window, a: amount, c: cap, e: windowEnd(window, zone) }
}

function shortOf({ short, left }: CountResult, items: readonly HoldItem[], zone: string | undefined): Short | null {
  const item = short === undefined ? undefined : items[short]
  if (item === undefined) return null
  return { kind: 'short', key: item.key, left: left ?? 0, resetsAt: windowEnd(item.window, zone) }
}
