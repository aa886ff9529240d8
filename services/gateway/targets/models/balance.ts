import type { Clock, Ids } from '@plat/core'
import type { RouteEndpoint } from './endpoint.ts'

/** How a route distributes its calls: by the order of its endpoints, by their weights, or by their latency. */
export type Balancing = 'order' | 'weight' | 'latency'

/** The properties of an endpoint that balancing uses. */
export type Weighted = Pick<RouteEndpoint, 'key' | 'weight'>

/** Time after which a measurement has lost all but 37 % of its effect, in milliseconds. */
const DECAY_MS = 30_000
/** Latency that a failed attempt counts as, at least; otherwise twice the average. In milliseconds. */
const FAILED_MS = 5_000
/** Assumed latency of an endpoint that has not been measured while it has calls, so that not all first calls go there. */
const UNMEASURED_MS = 60_000
const RANDOM_VALUES = 65_536

/** Latency of one kind of call at an endpoint. */
interface Measured {
  /** Moving average in milliseconds; null before the first response. */
  averageMs: number | null
  /** Monotonic time of the last measurement. */
  at: number
  /** Attempts whose response has not begun. */
  pending: number
}

/** Average latency of one kind of call, in milliseconds, and the time since the last measurement. */
export interface Latency {
  readonly kind: string
  readonly averageMs: number
  /** Attempts whose response has not begun. */
  readonly pending: number
  readonly agoMs: number
}

/**
 * Distributes the calls of a route over its endpoints. By weight: smooth weighted round robin, so that each endpoint gets its share within
 * any few calls. By latency: of two random endpoints the one with the lower average latency times its unanswered calls, divided by its
 * weight. All state is of this replica.
 */
export class Balancer {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #ids: Pick<Ids, 'random'>
  /** Credit of endpoints in the round robin, by key. */
  readonly #credits = new Map<string, number>()
  /** By key of the endpoint, then by kind of call: a stream begins long before a whole response. */
  readonly #measured = new Map<string, Map<string, Measured>>()

  constructor({ clock, ids }: { readonly clock: Pick<Clock, 'monotonic'>; readonly ids: Pick<Ids, 'random'> }) {
    this.#clock = clock
    this.#ids = ids
  }

  /** Returns the endpoints in the order for one call. Those with weight 0 come last. */
  order<E extends Weighted>(endpoints: readonly E[], balancing: Balancing, kind: string): readonly E[] {
    if (balancing === 'order' || endpoints.length < 2) return endpoints
    const weighted = endpoints.filter(({ weight }) => weight > 0)
    const spare = endpoints.filter(({ weight }) => weight === 0)
    return [...(balancing === 'weight' ? this.#byWeight(weighted) : this.#byLatency(weighted, kind)), ...spare]
  }

  /** Called when an attempt begins. */
  started({ key }: Pick<Weighted, 'key'>, kind: string): void {
    this.#of(key, kind).pending++
  }

  /** Called when the response of an attempt has begun after `ms`; `failed`: it failed instead; null: it was aborted. */
  ended({ key }: Pick<Weighted, 'key'>, kind: string, ms: number | 'failed' | null): void {
    const measured = this.#of(key, kind)
    measured.pending = Math.max(0, measured.pending - 1)
    if (ms === null) return
    const now = this.#clock.monotonic()
    const { averageMs } = measured
    if (ms === 'failed') measured.averageMs = Math.max(FAILED_MS, 2 * (averageMs ?? 0))
    else {
      const old = averageMs === null ? 0 : Math.exp((measured.at - now) / DECAY_MS)
      // Calls that end in the same moment would otherwise have no effect.
      const share = Math.max(1 - old, 0.1)
      measured.averageMs = (averageMs ?? ms) * (1 - share) + ms * share
    }
    measured.at = now
  }

  /** Returns the average latency by kind of call, as far as this replica has measured it: only routes that balance by latency do. */
  measuredOf({ key }: Pick<Weighted, 'key'>): readonly Latency[] {
    const now = this.#clock.monotonic()
    return [...(this.#measured.get(key) ?? [])].flatMap(([kind, { averageMs, at, pending }]) =>
      averageMs === null ? [] : [{ kind, averageMs: Math.round(averageMs), pending, agoMs: Math.round(now - at) }],
    )
  }

  /** Forgets endpoints with other keys. */
  keep(keys: ReadonlySet<string>): void {
    for (const known of [this.#credits, this.#measured]) {
      for (const key of known.keys()) if (!keys.has(key)) known.delete(key)
    }
  }

  /** Each endpoint earns its weight; the one with the most credit is first and pays what all have earned. */
  #byWeight<E extends Weighted>(endpoints: readonly E[]): readonly E[] {
    let total = 0
    for (const { key, weight } of endpoints) {
      this.#credits.set(key, this.#credit(key) + weight)
      total += weight
    }
    const ordered = endpoints.toSorted((one, other) => this.#credit(other.key) - this.#credit(one.key))
    const [first] = ordered
    if (first !== undefined) this.#credits.set(first.key, this.#credit(first.key) - total)
    return ordered
  }

  #credit(key: string): number {
    return this.#credits.get(key) ?? 0
  }

  #byLatency<E extends Weighted>(endpoints: readonly E[], kind: string): readonly E[] {
    const cost = new Map(endpoints.map((one) => [one, this.#cost(one, kind)]))
    const costOf = (one: E) => cost.get(one) ?? 0
    const first = this.#draw(endpoints)
    const second = this.#draw(endpoints.filter((one) => one !== first))
    const ordered = endpoints.toSorted((one, other) => costOf(one) - costOf(other))
    if (first === undefined || second === undefined) return ordered
    const chosen = costOf(second) < costOf(first) ? second : first
    return [chosen, ...ordered.filter((one) => one !== chosen)]
  }

  #draw<E>(endpoints: readonly E[]): E | undefined {
    const [high = 0, low = 0] = this.#ids.random(2)
    return endpoints[Math.floor(((high * 256 + low) / RANDOM_VALUES) * endpoints.length)]
  }

  /** An average loses effect with time, so that a slow endpoint is tried again. */
  #cost({ key, weight }: Weighted, kind: string): number {
    const { averageMs, at, pending } = this.#measured.get(key)?.get(kind) ?? UNMEASURED
    if (averageMs === null) return (pending * UNMEASURED_MS) / weight
    const current = averageMs * Math.exp((at - this.#clock.monotonic()) / DECAY_MS)
    return (current * (pending + 1)) / weight
  }

  #of(key: string, kind: string): Measured {
    const kinds = this.#measured.getOrInsertComputed(key, () => new Map<string, Measured>())
    return kinds.getOrInsertComputed(kind, () => ({ ...UNMEASURED }))
  }
}

const UNMEASURED: Measured = { averageMs: null, at: 0, pending: 0 }
