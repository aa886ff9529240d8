import { type PoolBound, SharedPool } from '@plat/core'
import { type HoldItem, windowEnd } from '@plat/state'

/** Known counters that each new one checks for the end of their window, so that no timer is needed; a refused one checks more. */
const CHECKED_PER_COUNTER = 2
const CHECKED_WHEN_FULL = 1_000

export interface TemplateCountersOptions {
  readonly now: () => number
  /** IANA zone of day and month windows. */
  readonly zone: string
  /** Default: the row of the pool. */
  readonly pool?: SharedPool
}

/** A counter that has no room in the share of its template. */
export interface NoRoom {
  readonly item: HoldItem
  readonly bound: PoolBound
}

interface Known {
  readonly caller: readonly string[]
  /** Milliseconds since the epoch. */
  readonly endsAt: number
  /** A counter of which nothing was spent is forgotten after its call. */
  isSpent: boolean
}

/**
 * Counters of templates that calls of this process have used, by key and window. Tokens and requests choose what a template counts (names of
 * users, groups and models), so new counters are bounded for each template, and in it for each agent.
 */
export class TemplateCounters {
  readonly #options: TemplateCountersOptions
  readonly #pool: SharedPool
  readonly #known = new Map<string, Known>()
  #sweeper: Iterator<[string, Known]>

  constructor(options: TemplateCountersOptions) {
    this.#options = options
    this.#pool = options.pool ?? new SharedPool({ name: 'template_counters' })
    this.#sweeper = this.#known.entries()
  }

  get size(): number {
    return this.#known.size
  }

  /** Admits the counters of a call; null: all of them. `agent`: `<namespace>/<agent>`. */
  admit(items: readonly HoldItem[], agent: string): NoRoom | null {
    for (const item of items) {
      if (item.template === undefined) continue
      const bound = this.#add(item, item.template, agent)
      if (bound !== null) return { item, bound }
    }
    return null
  }

  /**
   * Forgets the counters of a call of which nothing was ever spent: names that an upstream refuses take no room. `spentOf`: what the call spent of
   * an item.
   */
  settle(items: readonly HoldItem[], agent: string, spentOf: (item: HoldItem) => number): void {
    for (const item of items) {
      if (item.template === undefined) continue
      const name = nameOf(item)
      const known = this.#known.get(name)
      if (spentOf(item) > 0) {
        if (known !== undefined) known.isSpent = true
        else this.#insertSpent(item, callerOf(item.template, agent))
      } else if (known?.isSpent === false && this.#known.delete(name)) this.#pool.release(known.caller)
    }
  }

  #add(item: HoldItem, template: string, agent: string): PoolBound | null {
    if (this.#known.has(nameOf(item))) return null
    const caller = callerOf(template, agent)
    this.#forget(this.#pool.boundFor(caller) === null ? CHECKED_PER_COUNTER : CHECKED_WHEN_FULL)
    const bound = this.#pool.acquire(caller)
    if (bound === null) this.#insert(item, caller, false)
    return bound
  }

  /** Another call of the same name was refused meanwhile. */
  #insertSpent(item: HoldItem, caller: readonly string[]): void {
    this.#pool.add(caller)
    this.#insert(item, caller, true)
  }

  #insert(item: HoldItem, caller: readonly string[], isSpent: boolean): void {
    const endsAt = windowEnd(item.window, this.#options.zone) ?? Number.POSITIVE_INFINITY
    this.#known.set(nameOf(item), { caller, endsAt, isSpent })
  }

  /** Removes those of the next entries whose window has ended. */
  #forget(count: number): void {
    const now = this.#options.now()
    for (let checked = 0; checked < Math.min(count, this.#known.size); checked++) {
      let next = this.#sweeper.next()
      if (next.done === true) {
        this.#sweeper = this.#known.entries()
        next = this.#sweeper.next()
      }
      if (next.done === true) return
      const [name, { caller, endsAt }] = next.value
      if (endsAt <= now && this.#known.delete(name)) this.#pool.release(caller)
    }
  }
}

function nameOf({ key, window }: HoldItem): string {
  return `${key}\n${window}`
}

function callerOf(template: string, agent: string): readonly string[] {
  return [template, `${template}\n${agent}`]
}
