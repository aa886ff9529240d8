import { type Clock, type Ids, type PoolCaller, reasonOf, SharedPool } from '@plat/core'
import { PoolFullError } from '../../limits/limits.ts'
import { type CountBatch, type Database, wasLocked } from '../database.ts'
import { StateUnreachableError } from '../pool.ts'
import { type Counted, NotCountedError, type Operation, type StoredItem } from './operation.ts'
import type { ServerClock } from './server-clock.ts'

/** Maximum number of operations per transaction. */
const BATCH = 128
/** Maximum number of concurrent transactions of a gateway, each on separate counters. */
const MAX_FLIGHTS = 4
/** Maximum number of these on locked counters, so that the others proceed. */
const MAX_ISOLATED_FLIGHTS = 2
/** Another transaction starts beside those in progress when this many operations wait, or after this time, in milliseconds. */
const BUSY_QUEUE = 32
const LINGER_MS = 20
/** Maximum number of operations considered for a batch: more than the calls of a gateway that can wait for a locked counter. */
const SCAN = 16_384
/** Maximum number of waiting operations; one more is refused at once. */
const MAX_WAITING = 100_000
/** Maximum number of settlements kept during an outage; one more makes all of them count as spent in full. */
const MAX_OWED = 100_000
/** How long an operation may wait for a locked counter before it is refused, in milliseconds. */
const WAIT_MS = 4_000
/** How long a locked counter gets separate transactions, in milliseconds. */
const ISOLATE_MS = 5_000
/** Maximum number of counters known as locked. */
const MAX_ISOLATED = 1_000
/** How long closing waits for locked counters, in milliseconds. */
const CLOSE_MS = 2_000
/** Interval at which failed settlements are sent again, in milliseconds. */
const RETRY_MS = 250
/** How long after it was sent a take may still be counted, in milliseconds; well below the age of tombstones. */
const TAKE_DEADLINE_MS = 30_000

interface Waiting {
  readonly operation: Operation
  /** Names of its counters. */
  readonly names: readonly string[]
  readonly since: number
  /** Null: not counted yet, but will be. */
  resolve(result: Counted | null): void
  /** Null for operations that must be counted eventually. */
  readonly reject: ((error: NotCountedError) => void) | null
  /** Sent in a separate transaction, after one that failed for a lock. */
  alone: boolean
}

/** A transaction in progress. */
interface Flight {
  readonly batch: readonly Waiting[]
  readonly names: ReadonlySet<string>
  readonly isolated: boolean
}

/** Why a batch was not counted, with the index of the locked counter, if any. */
interface Locked {
  readonly cause: unknown
  readonly request: CountBatch
  readonly place: number | null
}

export interface CountingOptions {
  readonly database: Database
  readonly clock: Clock
  readonly serverClock: ServerClock
  readonly ids: Ids
  /** Reservations that wait. Default: the row of the pool. */
  readonly queued?: SharedPool | undefined
  warn(message: string): void
}

/**
 * Sends operations on counters in batches. Batches run concurrently on different counters, so that a counter locked by another gateway delays only
 * the calls that need it.
 */
export class Counting {
  readonly #options: CountingOptions
  readonly #queued: SharedPool
  #owner: string
  #refs = 0
  #queue: Waiting[] = []
  /** Settlements that could not be sent. */
  #owed: Waiting[] = []
  readonly #flights = new Set<Flight>()
  /** Locked counters, with the time until which they are isolated. */
  readonly #isolated = new Map<string, number>()
  #isScheduled = false
  #cancelRetry: () => void = () => {}
  #cancelLinger: () => void = () => {}
  #onIdle: (() => void)[] = []
  /** From then on, operations that meet a locked counter fail. */
  #closesAt = Number.POSITIVE_INFINITY

  constructor(options: CountingOptions) {
    this.#options = options
    this.#queued = options.queued ?? new SharedPool({ name: 'queued_counts' })
    this.#owner = options.ids.uuid()
  }

  get database(): Database {
    return this.#options.database
  }

  get serverClock(): ServerClock {
    return this.#options.serverClock
  }

  /** Id of this run of the gateway; changes after settlements were dropped. */
  get owner(): string {
    return this.#owner
  }

  nextRef(): string {
    return `${this.#owner}/${++this.#refs}`
  }

  /** Rejects with NotCountedError, or with PoolFullError if too many operations of the caller wait. */
  async ask(operation: Operation, caller: PoolCaller): Promise<Counted> {
    const bound = this.#queued.acquire(caller)
    if (bound !== null) throw new PoolFullError('reservations wait for the state database', bound)
    try {
      return await this.#ask(operation)
    } finally {
      this.#queued.release(caller)
    }
  }

  #ask(operation: Operation): Promise<Counted> {
    if (this.#queue.length >= MAX_WAITING)
      return Promise.reject(new NotCountedError('too many operations are queued for the state database', false))
    const { promise, resolve, reject } = Promise.withResolvers<Counted>()
    this.#add(operation, (result) => resolve(result ?? {}), reject)
    return promise
  }

  /** For operations that must be counted: resolves with null when that happens only later. Never rejects. */
  owe(operation: Operation): Promise<Counted | null> {
    const { promise, resolve } = Promise.withResolvers<Counted | null>()
    this.#add(operation, resolve, null)
    return promise
  }

  /** Resolves after every waiting operation was tried once more. Operations not counted then count as spent when this replica is gone. */
  async close(): Promise<void> {
    this.#closesAt = this.#options.clock.monotonic() + CLOSE_MS
    this.#cancelRetry()
    this.#requeueOwed()
    this.#dispatch()
    if (this.#flights.size > 0 || this.#queue.length > 0)
      await new Promise<void>((resolve) => void this.#onIdle.push(resolve))
    this.#cancelRetry()
    this.#cancelLinger()
  }

  #add(operation: Operation, resolve: Waiting['resolve'], reject: Waiting['reject']): void {
    const items = operation.do === 'extend' ? [...operation.items, ...operation.more] : operation.items
    const names = [...new Set(items.map(nameOf))]
    this.#queue.push({ operation, names, since: this.#options.clock.monotonic(), resolve, reject, alone: false })
    if (this.#isScheduled) return
    this.#isScheduled = true
    // Operations of the same turn form one batch.
    queueMicrotask(() => {
      this.#isScheduled = false
      this.#dispatch()
    })
  }

  #dispatch(): void {
    this.#cancelLinger()
    while (this.#queue.length > 0 && this.#flights.size < MAX_FLIGHTS) {
      if (this.#flights.size > 0 && this.#queue.length < BUSY_QUEUE && !this.#hasLingered()) break
      const flight = this.#nextFlight()
      if (flight === null) {
        // Without transactions in progress, every considered operation was refused: those behind them are next.
        if (this.#flights.size === 0) continue
        break
      }
      this.#flights.add(flight)
      void this.#fly(flight)
    }
    if (this.#queue.length > 0 && this.#flights.size > 0)
      this.#cancelLinger = this.#options.clock.after(LINGER_MS, () => this.#dispatch())
    if (this.#queue.length === 0 && this.#flights.size === 0) for (const done of this.#onIdle.splice(0)) done()
  }

  #hasLingered(): boolean {
    const first = this.#queue[0]
    return first !== undefined && this.#options.clock.monotonic() - first.since >= LINGER_MS
  }

  /**
   * Selects operations in order whose counters no other transaction uses. Counters of a skipped operation are reserved for it, so that later ones
   * cannot overtake it repeatedly.
   */
  #nextFlight(): Flight | null {
    const now = this.#options.clock.monotonic()
    const used = new Set<string>()
    for (const { names } of this.#flights) for (const name of names) used.add(name)
    const batch: Waiting[] = []
    const names = new Set<string>()
    const rest: Waiting[] = []
    /** Null: the batch has no locked counter. */
    let isolated: string | null = null
    let isolatedFlights = 0
    for (const flight of this.#flights) if (flight.isolated) isolatedFlights++
    let considered = 0
    for (const waiting of this.#queue) {
      if (batch.length === BATCH || considered === SCAN) break
      considered++
      if (this.#isTooLate(waiting, now)) continue
      const locked = waiting.alone ? ALONE : this.#lockedOf(waiting, now)
      const [first] = batch
      const fits =
        first === undefined
          ? locked === null || isolatedFlights < MAX_ISOLATED_FLIGHTS
          : !first.alone && locked === isolated
      if (fits && !waiting.names.some((name) => used.has(name))) {
        isolated = locked
        batch.push(waiting)
        for (const name of waiting.names) names.add(name)
      } else {
        rest.push(waiting)
        for (const name of waiting.names) used.add(name)
      }
    }
    this.#queue = rest.concat(this.#queue.slice(considered))
    return batch.length === 0 ? null : { batch, names, isolated: isolated !== null }
  }

  #isTooLate({ reject, since }: Waiting, now: number): boolean {
    if (reject === null || now - since < WAIT_MS) return false
    reject(new NotCountedError('a counter stays locked in the state database', false))
    return true
  }

  #lockedOf({ names }: Waiting, now: number): string | null {
    if (this.#isolated.size === 0) return null
    for (const name of names) {
      const end = this.#isolated.get(name)
      if (end === undefined) continue
      if (now < end) return name
      this.#isolated.delete(name)
    }
    return null
  }

  async #fly(flight: Flight): Promise<void> {
    const { batch } = flight
    const request = this.#batchOf(flight)
    try {
      const { answers, xid } = await this.database.count(request)
      this.database.continuity.sawTransaction(xid)
      for (const [at, { resolve }] of batch.entries()) resolve(answers?.[at] ?? {})
    } catch (error) {
      if (wasLocked(error))
        this.#locked(flight, { cause: error, request, place: await this.database.lockedCounter(request) })
      else this.#failed(batch, error)
    } finally {
      this.#flights.delete(flight)
      this.#dispatch()
    }
  }

  /** Orders counters alike in all gateways: two batches that lock several counters cannot deadlock. */
  #batchOf({ batch, names: all }: Flight): CountBatch {
    const names = [...all].sort()
    const places = new Map(names.map((name, at) => [name, at]))
    const counters = new Map<string, StoredItem>()
    const placed = (items: readonly StoredItem[]) =>
      items.map((item) => {
        const name = nameOf(item)
        counters.set(name, item)
        return { ...item, n: places.get(name) }
      })
    const operations = batch.map(({ operation }) => {
      const items = placed(operation.items)
      if (operation.do === 'take') return { ...operation, items }
      if (operation.do === 'extend') return { ...operation, items, more: placed(operation.more) }
      return { ...operation, items: undefined, n: items.map(({ n }) => n) }
    })
    const of = names.map((name) => counters.get(name))
    return {
      owner: this.#owner,
      deadline: this.serverClock.now() + TAKE_DEADLINE_MS,
      keys: of.map((item) => item?.k ?? ''),
      windows: of.map((item) => item?.w ?? ''),
      ends: of.map((item) => item?.e ?? null),
      operations,
    }
  }

  /**
   * The batch was rolled back: all of it is retried, and operations on the locked counter are isolated. When `place` is null (no counter is locked
   * any more, or a hold was), each operation is sent alone.
   */
  #locked({ batch }: Flight, { cause, request, place }: Locked): void {
    if (this.#options.clock.monotonic() >= this.#closesAt) {
      this.#giveUp(batch, false, cause)
      return
    }
    if (place === null) for (const waiting of batch) waiting.alone = true
    else if (this.#isolated.size < MAX_ISOLATED) {
      const name = `${request.keys[place]}\n${request.windows[place]}`
      this.#isolated.set(name, this.#options.clock.monotonic() + ISOLATE_MS)
    }
    this.#queue = batch.concat(this.#queue)
  }

  #failed(batch: readonly Waiting[], cause: unknown): void {
    const stage = cause instanceof StateUnreachableError ? cause.stage : 'unknown'
    this.#giveUp(batch, stage === 'unknown', cause)
    if (stage !== 'connect') return
    // Without a connection no other operation can be counted either.
    this.#giveUp(this.#queue.splice(0), false, cause)
  }

  #giveUp(batch: readonly Waiting[], wasSent: boolean, cause: unknown): void {
    for (const waiting of batch) {
      const { reject, resolve } = waiting
      if (reject !== null) reject(new NotCountedError(reasonOf(cause), wasSent, { cause }))
      else {
        resolve(null)
        this.#owed.push(waiting)
      }
    }
    if (this.#owed.length > MAX_OWED) this.#forgetOwed()
    this.#cancelRetry()
    if (this.#owed.length > 0) this.#cancelRetry = this.#options.clock.after(RETRY_MS, () => this.#retry())
  }

  /** Continues under a new owner: holds of the old one soon count as spent in full. */
  #forgetOwed(): void {
    const { ids, warn } = this.#options
    warn(`${this.#owed.length} settlements could not be counted: what was held for them counts as spent`)
    this.#owed = []
    this.#owner = ids.uuid()
  }

  #retry(): void {
    this.#requeueOwed()
    this.#dispatch()
  }

  #requeueOwed(): void {
    this.#queue = this.#owed.concat(this.#queue)
    this.#owed = []
  }
}

const ALONE = ''

function nameOf({ k, w }: StoredItem): string {
  return `${k}\n${w}`
}
