import { type Clock, LinkedMap, type PoolBound, type PoolObserver, type PoolObservers, poolTable } from '@plat/core'
import type { Identity } from '../../../call/index.ts'
import type { GatewayMetrics } from '../../../metrics.ts'
import type { UpstreamExchange } from '../../wire/exchange.ts'
import { type AbandonedMetrics, createAbandonedMetrics } from '../metrics.ts'

/** Milliseconds for which a call may continue at an upstream with a session after its legacy client has left. */
const MAX_AGE_MS = 300_000
/** Limits of abandoned calls in total, per agent and per session. Above a limit, the oldest call is aborted. */
const {
  total: MAX_OF_ALL,
  shares: [{ max: MAX_OF_AGENT }, { max: MAX_OF_SESSION }],
} = poolTable.abandoned_calls

/**
 * Calls that continue at an upstream after their client has left. Before revision 2026-07-28 a disconnect is not a cancellation, so an
 * upstream with a session may finish its work. Each such call uses an upstream connection, so their number is limited.
 */
export class AbandonedCalls {
  readonly #clock: Clock
  readonly #metrics: AbandonedMetrics
  readonly #observer: PoolObserver | undefined
  readonly #all: Share = new LinkedMap()
  readonly #shares = new Map<string, Share>()

  constructor(clock: Clock, metrics: AbandonedMetrics, observer?: PoolObserver) {
    this.#clock = clock
    this.#metrics = metrics
    this.#observer = observer
    observer?.watch(() => this.#all.size)
  }

  get size(): number {
    return this.#all.size
  }

  /** Lets the exchange continue and discards its response, for a limited time and within the caller's share. */
  add({ tenant, namespace, agent, session }: Identity, exchange: Pick<UpstreamExchange, 'abort' | 'discard'>): void {
    const agentKey = JSON.stringify([tenant, namespace, agent])
    const call: Abandoned = { exchange, keys: [agentKey, JSON.stringify([agentKey, session])], cancel: () => {} }
    call.cancel = this.#clock.after(MAX_AGE_MS, () => exchange.abort('it ran on for too long'))
    this.#all.set(call, null)
    for (const key of call.keys) this.#shareOf(key).set(call, null)
    this.#metrics.abandoned(this.#all.size)
    const [ofAgent, ofSession] = call.keys
    this.#trim(this.#shareOf(ofSession), MAX_OF_SESSION, 'share')
    this.#trim(this.#shareOf(ofAgent), MAX_OF_AGENT, 'share')
    this.#trim(this.#all, MAX_OF_ALL, 'total')
    exchange.discard(() => this.#remove(call))
  }

  #trim(share: Share, max: number, bound: PoolBound): void {
    if (share.size <= max) return
    const [oldest] = share.oldest ?? []
    if (oldest === undefined) return
    this.#metrics.abandonedAborted()
    this.#observer?.refused(bound)
    oldest.exchange.abort('other calls without a client took its place')
    this.#remove(oldest)
  }

  #shareOf(key: string): Share {
    let share = this.#shares.get(key)
    if (share === undefined) {
      share = new LinkedMap()
      this.#shares.set(key, share)
    }
    return share
  }

  #remove(call: Abandoned): void {
    if (!this.#all.delete(call)) return
    call.cancel()
    for (const key of call.keys) {
      const share = this.#shares.get(key)
      share?.delete(call)
      if (share?.size === 0) this.#shares.delete(key)
    }
    this.#metrics.abandoned(this.#all.size)
  }
}

/** Calls, oldest first. */
type Share = LinkedMap<Abandoned, null>

interface Abandoned {
  readonly exchange: Pick<UpstreamExchange, 'abort' | 'discard'>
  /** Keys of the agent and of the session. */
  readonly keys: readonly [string, string]
  cancel: () => void
}

export function createAbandonedCalls({
  clock,
  metrics,
  pools,
}: {
  readonly clock: Clock
  readonly metrics: GatewayMetrics
  readonly pools?: PoolObservers<'abandoned_calls'>
}): AbandonedCalls {
  return new AbandonedCalls(clock, createAbandonedMetrics(metrics), pools?.of('abandoned_calls'))
}
