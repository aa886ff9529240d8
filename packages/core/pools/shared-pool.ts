import { Holders } from './holders.ts'
import { type PoolName, type PoolOf, type PoolRow, type PoolService, poolTable } from './table.ts'

/** The limit that a refused caller reached: its share, or the total of the pool. */
export type PoolBound = 'share' | 'total'

/** Observes one pool. */
export interface PoolObserver {
  /** `used` is called whenever the usage is reported. */
  watch(used: () => number): void
  /** Called once for each refusal. */
  refused(bound: PoolBound): void
}

/** The observers of a service's pools. */
export interface PoolObservers<P extends PoolName> {
  of(pool: P): PoolObserver
}

export interface SharedPoolOptions {
  /** Name of its row in the table of pools. */
  readonly name: PoolName
  /** Maximum units of all callers together; default: the row's. */
  readonly total?: number
  /** Maximum units per caller, the wider caller first; default: the row's. */
  readonly shares?: readonly number[]
  /** Called for each refusal, such as to count it. */
  readonly onRefused?: ((bound: PoolBound) => void) | undefined
}

/** Holder of units: one caller name, or one for each share of the pool, the wider first. */
export type PoolCaller = string | readonly string[]

/**
 * Counts how much of a bounded resource each caller holds. It stores numbers only: the resource and its lifetime belong to the owner of the pool. A
 * caller that holds nothing is soon forgotten.
 */
export class SharedPool {
  readonly total: number
  readonly #levels: readonly Holders[]
  readonly #onRefused: SharedPoolOptions['onRefused']
  #used = 0

  constructor({ name, total, shares, onRefused }: SharedPoolOptions) {
    const row: PoolRow = poolTable[name]
    this.total = total ?? row.total
    this.#levels = (shares ?? row.shares.map(({ max }) => max)).map((max) => new Holders(max))
    this.#onRefused = onRefused
  }

  /** Units held by all callers. */
  get used(): number {
    return this.#used
  }

  /** Number of callers that hold units, each counted with its wider ones. */
  get callers(): number {
    return this.#levels.reduce((sum, { size }) => sum + size, 0)
  }

  /** Returns the units of one caller; `level` 1 for the narrower of two. */
  usedBy(caller: string, level = 0): number {
    return this.#levels[level]?.unitsOf(caller) ?? 0
  }

  /** Acquires units. Returns null, or the limit reached; then nothing has changed. */
  acquire(caller: PoolCaller, units = 1): PoolBound | null {
    const bound = this.boundFor(caller, units)
    if (bound === null) this.add(caller, units)
    else this.#onRefused?.(bound)
    return bound
  }

  /** Returns the limit that `acquire` would report now, or null. */
  boundFor(caller: PoolCaller, units = 1): PoolBound | null {
    for (let level = 0; level < this.#levels.length; level++) {
      const holders = this.#levels[level]
      if (holders !== undefined && holders.unitsOf(nameAt(caller, level)) + units > holders.max) return 'share'
    }
    return this.#used + units > this.total ? 'total' : null
  }

  /** Adds units without a limit: those admitted elsewhere, such as by another replica or before a restart. */
  add(caller: PoolCaller, units = 1): void {
    this.#change(caller, units)
  }

  release(caller: PoolCaller, units = 1): void {
    this.#change(caller, -units)
  }

  #change(caller: PoolCaller, units: number): void {
    for (let level = 0; level < this.#levels.length; level++) {
      this.#levels[level]?.change(nameAt(caller, level), units)
    }
    this.#used += units
  }
}

export function watchedPool({
  observer,
  ...options
}: Omit<SharedPoolOptions, 'onRefused'> & { readonly observer: PoolObserver | undefined }): SharedPool {
  const pool = new SharedPool({ ...options, onRefused: (bound) => observer?.refused(bound) })
  observer?.watch(() => pool.used)
  return pool
}

/** Returns the pools of a service, in table order. */
export function poolsOf<S extends PoolService>(service: S): readonly PoolOf<S>[] {
  return Object.keys(poolTable).filter((name): name is PoolOf<S> => isPoolOf(name, service))
}

function isPoolOf(name: string, service: PoolService): boolean {
  return Object.entries<PoolRow>(poolTable).some(([key, { services }]) => key === name && services.includes(service))
}

function nameAt(caller: PoolCaller, level: number): string {
  return typeof caller === 'string' ? caller : (caller[level] ?? '')
}
