import { type PoolName, type PoolOf, type PoolRow, type PoolService, poolTable } from './table.ts'

/** The bound that a refused caller met: a share, or the total of the pool. */
export type PoolBound = 'share' | 'total'

/** Observes one pool. */
export interface PoolObserver {
  /** Reads `used` whenever it is shown. */
  watch(used: () => number): void
  /** Called once for each refusal. */
  refused(bound: PoolBound): void
}

/** The observers of a service's pools. */
export interface PoolObservers<P extends PoolName> {
  of(pool: P): PoolObserver
}

export interface SharedPoolOptions {
  /** Its row in the table of pools. */
  readonly name: PoolName
  /** Units that all callers together may hold; default: the row's. */
  readonly total?: number
  /** Units that one caller may hold, the wider caller first; default: the row's. */
  readonly shares?: readonly number[]
  /** Called once for each refusal, such as to count it. */
  readonly onRefused?: ((bound: PoolBound) => void) | undefined
}

/** Who holds units: the name of one caller, or of each for which the pool has a share, the wider first. */
export type PoolCaller = string | readonly string[]

/** What one caller holds: an object, so that a change needs one look-up. */
interface Holding {
  units: number
}

/**
 * Counts how much of a bounded resource each caller holds. It keeps numbers only: the resource itself, and its age, stay with the owner
 * of the pool. A caller that holds nothing leaves no entry behind.
 */
export class SharedPool {
  readonly total: number
  readonly #levels: readonly { readonly max: number; readonly held: Map<string, Holding> }[]
  readonly #onRefused: SharedPoolOptions['onRefused']
  #used = 0

  constructor({ name, total, shares, onRefused }: SharedPoolOptions) {
    const row: PoolRow = poolTable[name]
    this.total = total ?? row.total
    this.#levels = (shares ?? row.shares.map(({ max }) => max)).map((max) => ({ max, held: new Map() }))
    this.#onRefused = onRefused
  }

  /** Units held by all callers. */
  get used(): number {
    return this.#used
  }

  /** Callers that hold something, each with its wider ones. */
  get callers(): number {
    return this.#levels.reduce((sum, { held }) => sum + held.size, 0)
  }

  /** Units of one caller; of `level` 1 for the narrower of two. */
  usedBy(caller: string, level = 0): number {
    return this.#levels[level]?.held.get(caller)?.units ?? 0
  }

  /** Returns null when the units are acquired, otherwise the bound that was met; then nothing has changed. */
  acquire(caller: PoolCaller, units = 1): PoolBound | null {
    const bound = this.boundFor(caller, units)
    if (bound === null) this.add(caller, units)
    else this.#onRefused?.(bound)
    return bound
  }

  /** The bound that an acquisition would meet now. */
  boundFor(caller: PoolCaller, units = 1): PoolBound | null {
    for (let level = 0; level < this.#levels.length; level++) {
      const share = this.#levels[level]
      if (share !== undefined && this.usedBy(nameAt(caller, level), level) + units > share.max) return 'share'
    }
    return this.#used + units > this.total ? 'total' : null
  }

  /** Counts units without a limit: those that were admitted elsewhere, such as by another replica or before a restart. */
  add(caller: PoolCaller, units = 1): void {
    this.#change(caller, units)
  }

  /** Returns units; only those that were acquired. */
  release(caller: PoolCaller, units = 1): void {
    this.#change(caller, -units)
  }

  #change(caller: PoolCaller, units: number): void {
    for (let level = 0; level < this.#levels.length; level++) {
      const held = this.#levels[level]?.held
      const name = nameAt(caller, level)
      const holding = held?.get(name)
      if (holding === undefined) {
        if (units > 0) held?.set(name, { units })
        continue
      }
      holding.units += units
      if (holding.units <= 0) held?.delete(name)
    }
    this.#used += units
  }
}

/** A pool that an observer watches. */
export function watchedPool({
  observer,
  ...options
}: Omit<SharedPoolOptions, 'onRefused'> & { readonly observer: PoolObserver | undefined }): SharedPool {
  const pool = new SharedPool({ ...options, onRefused: (bound) => observer?.refused(bound) })
  observer?.watch(() => pool.used)
  return pool
}

/** Names of the pools of a service, in the order of the table. */
export function poolsOf<S extends PoolService>(service: S): readonly PoolOf<S>[] {
  return Object.keys(poolTable).filter((name): name is PoolOf<S> => isPoolOf(name, service))
}

function isPoolOf(name: string, service: PoolService): boolean {
  return Object.entries<PoolRow>(poolTable).some(([key, { services }]) => key === name && services.includes(service))
}

function nameAt(caller: PoolCaller, level: number): string {
  return typeof caller === 'string' ? caller : (caller[level] ?? '')
}
