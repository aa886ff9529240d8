import { type Clock, type PoolCaller, SharedPool } from '@plat/core'
import { ById, type Listed } from './by-id.ts'
import { checkAmount, checkItems, joined, nameOf, partsOf, sameItem, settledBy } from './items.ts'
import { type Hold, type HoldItem, type Limits, type Overrun, PoolFullError, type Short } from './limits.ts'
import { windowEnd } from './window.ts'

/** How long a counter without a window end is kept after its last use, in milliseconds: 90 days. */
const LIFE_AGE_MS = 90 * 24 * 3_600_000
/** Buckets that a refused one looks at for windows that are over: the event loop is not held for a search through all. */
const SEARCHED_BUCKETS = 1_000
/** Holds the buckets of before this process began. */
const RESTORED = 'restored'

export interface LocalLimitsOptions {
  /** Decides when windows end: the clock by which callers name them. */
  readonly clock: Pick<Clock, 'now'>
  /** Called for each call that cost more than its hold. */
  readonly onOverrun?: (overrun: Overrun) => void
  /** Called after each amount spent of a hold, with the item and the total spent of its key and window. */
  readonly onSpent?: (item: HoldItem, spent: number) => void
  /**
   * Counters (key and window), charged to the caller that was counted first. Beyond the limit a new one is refused: an amount that is not counted is
   * not capped. Default: the row of the pool.
   */
  readonly counters?: SharedPool
  /** Open holds. Default: the row of the pool. */
  readonly holds?: SharedPool
  /** IANA zone of day and month windows; default UTC. */
  readonly zone?: string
}

export interface Counted {
  readonly key: string
  readonly window: string
  readonly spent: number
  readonly held: number
  /** Milliseconds since the epoch. */
  readonly usedAt: number
}

/**
 * Limits of one process: counted in memory, where a take is one synchronous step, and rebuilt at start from the ledger. The owner of a hold lives as
 * long as the process, so holds that expire were forgotten; they count as spent until they are settled.
 */
export class LocalLimits implements Limits {
  readonly #clock: Pick<Clock, 'now'>
  readonly #onOverrun: (overrun: Overrun) => void
  readonly #onSpent: LocalLimitsOptions['onSpent']
  readonly #zone: string | undefined
  readonly #pool: SharedPool
  readonly #holds: SharedPool
  readonly #counted = new Map<string, Bucket>()
  readonly #open = new ById<LocalHold>()
  readonly #owner: Owner
  #sweeper: Iterator<[string, Bucket]>
  #nextExpiry = Number.POSITIVE_INFINITY

  constructor({ clock, onOverrun, onSpent, zone, counters, holds }: LocalLimitsOptions) {
    this.#clock = clock
    this.#onOverrun = onOverrun ?? (() => {})
    this.#onSpent = onSpent
    this.#zone = zone
    this.#pool = counters ?? new SharedPool({ name: 'counters' })
    this.#holds = holds ?? new SharedPool({ name: 'open_holds' })
    this.#sweeper = this.#counted.entries()
    this.#owner = {
      add: (items, caller) => this.#add(items, this.#clock.now(), caller),
      spend: (id, item, amount, from) => this.#spend(id, item, amount, from),
      closed: (hold) => this.#close(hold),
    }
  }

  /** Number of holds that are neither settled, released nor expired. */
  get openHolds(): number {
    return this.#open.size
  }

  /** Number of counters (key and window). */
  get buckets(): number {
    return this.#counted.size
  }

  take(id: string, items: readonly HoldItem[], expiresAt: number, caller: PoolCaller = ''): Hold | Short {
    const now = this.#clock.now()
    this.#expire(now)
    const known = this.#open.get(id)
    if (known !== null) {
      if (known.wasTakenAs(items)) return known
      throw new RangeError(`hold ${id} is open with other items`)
    }
    const bound = this.#holds.acquire(caller)
    if (bound !== null) throw new PoolFullError('holds are open', bound)
    const short = this.#addOrRelease(items, now, caller)
    if (short !== null) return short
    const hold = new LocalHold({ id, items, expiresAt, caller }, this.#owner)
    this.#open.add(hold)
    this.#nextExpiry = Math.min(this.#nextExpiry, expiresAt)
    return hold
  }

  async used(key: string, window: string): Promise<{ spent: number; held: number }> {
    this.#expire(this.#clock.now())
    const bucket = this.#counted.get(nameOf({ key, window }))
    if (bucket === undefined || bucket.isUnused(this.#clock.now())) return { spent: 0, held: 0 }
    return { spent: bucket.spent, held: bucket.held }
  }

  now(): number {
    return this.#clock.now()
  }

  /** Yields all counters, in no order, possibly including ended windows. */
  *counted(): Generator<Counted> {
    const now = this.#clock.now()
    this.#expire(now)
    for (const [name, bucket] of this.#counted) {
      const { spent, held, usedAt } = bucket
      if (!bucket.isUnused(now)) yield { ...partsOf(name), spent, held, usedAt }
    }
  }

  open(): readonly Hold[] {
    this.#expire(this.#clock.now())
    return this.#open.all()
  }

  /** Counts an amount spent before this process started; `at` is the time, in milliseconds since the epoch. */
  restore(item: Pick<HoldItem, 'key' | 'window'>, amount: number, at: number): void {
    checkAmount(amount, 'amount')
    const end = windowEnd(item.window, this.#zone)
    const now = this.#clock.now()
    if (amount === 0 || (end === null ? now - at >= LIFE_AGE_MS : now >= end)) return
    const bucket = this.#bucket(item, at, null)
    bucket.spent += amount
    bucket.usedAt = Math.max(bucket.usedAt, at)
  }

  /** Forgets all amounts, before any hold was taken. */
  forget(): void {
    if (this.openHolds > 0) throw new Error('amounts of open holds cannot be forgotten')
    for (const [name, bucket] of this.#counted) {
      this.#counted.delete(name)
      this.#pool.release(bucket.caller)
    }
    this.#sweeper = this.#counted.entries()
  }

  #close(hold: LocalHold): void {
    this.#open.delete(hold)
    this.#holds.release(hold.caller)
  }

  #addOrRelease(items: readonly HoldItem[], now: number, caller: PoolCaller): Short | null {
    let short: Short | null | undefined
    try {
      short = this.#add(items, now, caller)
      return short
    } finally {
      if (short !== null) this.#holds.release(caller)
    }
  }

  /** Adds to the held amounts, all or nothing. */
  #add(items: readonly HoldItem[], now: number, caller: PoolCaller): Short | null {
    checkItems(items)
    const buckets = items.map((item) => this.#bucket(item, now, caller))
    for (let place = 0; place < items.length; place++) {
      const item = items[place]
      const bucket = buckets[place]
      if (item === undefined || bucket === undefined) continue
      const left = item.cap - bucket.spent - bucket.held
      if (item.amount > left) return { kind: 'short', key: item.key, left: Math.max(0, left), resetsAt: bucket.endsAt }
    }
    for (let place = 0; place < items.length; place++) {
      const item = items[place]
      const bucket = buckets[place]
      if (item === undefined || bucket === undefined) continue
      bucket.held += item.amount
      bucket.usedAt = now
    }
    return null
  }

  /** Converts a held amount (or, after expiry, one counted as spent) into the spent amount. */
  #spend(id: string, item: HoldItem, amount: number, from: 'held' | 'expired'): void {
    const now = this.#clock.now()
    const bucket = this.#bucket(item, now, null)
    if (from === 'held') bucket.held -= item.amount
    else bucket.spent = Math.max(0, bucket.spent - item.amount)
    bucket.spent += amount
    bucket.usedAt = now
    if (amount > item.amount) this.#onOverrun({ id, key: item.key, held: item.amount, spent: amount })
    if (this.#onSpent !== undefined) this.#onSpent(item, bucket.spent)
  }

  /** Without a caller it was admitted before, and is counted whatever the bounds are. */
  #bucket(item: Pick<HoldItem, 'key' | 'window'>, now: number, caller: PoolCaller | null): Bucket {
    const name = nameOf(item)
    const known = this.#counted.get(name)
    if (known !== undefined) {
      if (known.isUnused(now)) known.spent = 0
      // A take looks up all its buckets before it uses any: the next look-up must not remove this one.
      if (caller !== null) known.usedAt = now
      return known
    }
    const bucket = new Bucket(windowEnd(item.window, this.#zone), now, caller ?? RESTORED)
    // Each new bucket checks two old ones, so that ended windows are removed without a timer.
    this.#forget(caller === null ? this.#clock.now() : now, 2)
    if (caller === null) this.#pool.add(RESTORED)
    else this.#acquire(caller, now)
    this.#counted.set(name, bucket)
    return bucket
  }

  #acquire(caller: PoolCaller, now: number): void {
    if (this.#pool.boundFor(caller) !== null) this.#forget(now, SEARCHED_BUCKETS)
    const bound = this.#pool.acquire(caller)
    if (bound !== null)
      throw new Error(`too many keys are counted, ${bound === 'share' ? 'of this agent' : 'of all agents'}`)
  }

  #forget(now: number, count: number): void {
    let wrapped = false
    for (let looked = 0; looked < count; looked++) {
      const next = this.#sweeper.next()
      if (next.done !== true) {
        const [name, bucket] = next.value
        if (bucket.isOver(now) && this.#counted.delete(name)) this.#pool.release(bucket.caller)
        continue
      }
      this.#sweeper = this.#counted.entries()
      if (wrapped) return
      wrapped = true
    }
  }

  #expire(now: number): void {
    if (now < this.#nextExpiry) return
    this.#nextExpiry = Number.POSITIVE_INFINITY
    for (const hold of this.#open.all()) {
      if (hold.expiresAt <= now) {
        this.#close(hold)
        hold.expire()
      } else {
        this.#nextExpiry = Math.min(this.#nextExpiry, hold.expiresAt)
      }
    }
  }
}

/** Spent and held amount of one key in one window. */
class Bucket {
  readonly endsAt: number | null
  /** Whose share it is in. */
  readonly caller: PoolCaller
  usedAt: number
  spent = 0
  held = 0

  constructor(endsAt: number | null, usedAt: number, caller: PoolCaller) {
    this.endsAt = endsAt
    this.usedAt = usedAt
    this.caller = caller
  }

  isOver(now: number): boolean {
    // A bucket created in this step is about to be used.
    if (this.held > 0 || now <= this.usedAt) return false
    return this.spent === 0 || (this.endsAt === null ? this.isUnused(now) : now >= this.endsAt)
  }

  /** Whether a counter without a window end is as old as one that is forgotten: it counts no more, though it is still stored. */
  isUnused(now: number): boolean {
    return this.endsAt === null && this.held === 0 && now - this.usedAt >= LIFE_AGE_MS
  }
}

/** Operations of a hold on the limits that created it. */
interface Owner {
  add(items: readonly HoldItem[], caller: PoolCaller): Short | null
  spend(id: string, item: HoldItem, amount: number, from: 'held' | 'expired'): void
  closed(hold: LocalHold): void
}

class LocalHold implements Hold, Listed<LocalHold> {
  readonly id: string
  readonly expiresAt: number
  readonly caller: PoolCaller
  next: LocalHold | null = null
  readonly #initial: readonly HoldItem[]
  readonly #owner: Owner
  #items: readonly HoldItem[]
  #state: 'held' | 'expired' = 'held'
  #settled: ReadonlyMap<string, number> | null = null

  constructor(
    {
      id,
      items,
      expiresAt,
      caller,
    }: Pick<Hold, 'id' | 'items'> & { readonly expiresAt: number; readonly caller: PoolCaller },
    owner: Owner,
  ) {
    this.id = id
    this.caller = caller
    this.expiresAt = expiresAt
    this.#items = items
    this.#initial = items
    this.#owner = owner
  }

  get items(): readonly HoldItem[] {
    return this.#items
  }

  get settled(): ReadonlyMap<string, number> | null {
    return this.#settled
  }

  wasTakenAs(items: readonly HoldItem[]): boolean {
    return items.length === this.#initial.length && items.every((item, place) => sameItem(item, this.#initial[place]))
  }

  extend(items: readonly HoldItem[]): Short | null {
    if (this.#settled !== null || this.#state === 'expired') throw new Error(`hold ${this.id} is over`)
    const short = this.#owner.add(items, this.caller)
    if (short === null) this.#items = joined(this.#items, items)
    return short
  }

  settle(actual: ReadonlyMap<string, number>): void {
    if (this.#settled !== null) return
    this.#settled = settledBy(this.#items, actual)
    for (const item of this.#items) this.#owner.spend(this.id, item, actual.get(item.key) ?? item.amount, this.#state)
    if (this.#state === 'held') this.#owner.closed(this)
  }

  release(): void {
    this.settle(new Map(this.#items.map(({ key }) => [key, 0])))
  }

  expire(): void {
    for (const item of this.#items) this.#owner.spend(this.id, item, item.amount, 'held')
    this.#state = 'expired'
  }
}
