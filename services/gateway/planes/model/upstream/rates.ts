import { type Clock, isPromise, rfc3339, whenReady } from '@plat/core'
import { type Hold, isShort, type Limits, type Short, windowOf } from '@plat/state'
import { type Call, callerOf, callingAgentOf, type Denial, deny } from '../../../call/index.ts'
import type { ModelEndpoint } from './endpoint.ts'

const MINUTE_SECONDS = 60
const MINUTE_MS = MINUTE_SECONDS * 1000

/** Lifetime of a hold in milliseconds if its replica fails before settling it. */
const HOLD_LIFE_MS = MINUTE_MS

/** The properties of an endpoint that its rate uses. */
type Limited = Pick<ModelEndpoint, 'key' | 'requestsPerMinute' | 'route'>

/** The properties of a call that its holds use. */
interface RatedCall {
  readonly id: string
  readonly facts: Pick<Call<'identity'>['facts'], 'identity'>
}

/**
 * Requests per minute of endpoints, over all sessions (docs/spec/gateway.md, `requestsPerMinute`). Counted like the rates of policies: over
 * all replicas, unless configured otherwise in `stateBackend.counters`. A request that cannot be counted is refused.
 */
export class EndpointRates {
  readonly #clock: Pick<Clock, 'now'>
  readonly #limits: Pick<Limits, 'take'>
  /** Endpoints whose requests of `#minute` are used up, so that no counter is queried until the next minute. */
  readonly #exhausted = new Set<string>()
  #minute = 0
  #count = 0

  constructor(clock: Pick<Clock, 'now'>, limits: Pick<Limits, 'take'>) {
    this.#clock = clock
    this.#limits = limits
  }

  /** Returns the milliseconds until the endpoint may get a request, as far as this replica knows; 0: now. */
  wait({ key, requestsPerMinute }: Limited): number {
    if (requestsPerMinute === null) return 0
    const now = this.#clock.now()
    const minute = Math.floor(now / MINUTE_MS)
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#exhausted.clear()
    }
    return this.#exhausted.has(key) ? (minute + 1) * MINUTE_MS - now : 0
  }

  /** Counts a request of this call. Returns null when it is within the limit. */
  take(endpoint: Limited, { id: callId, facts }: RatedCall): Denial | null | Promise<Denial | null> {
    const { key, requestsPerMinute, route } = endpoint
    if (requestsPerMinute === null) return null
    const waitMs = this.wait(endpoint)
    if (waitMs > 0) return tooManyRequests(route, this.#endOf(waitMs))
    const now = this.#clock.now()
    const window = windowOf(now, MINUTE_SECONDS)
    const item = { key: `rpm/${key}`, window, cap: requestsPerMinute, amount: 1, unit: 'calls' } as const
    // A call can try an endpoint twice, and each try counts.
    const id = `${callId}/rpm/${this.#count++}`
    try {
      const { identity } = facts
      const caller = [callingAgentOf(identity), callerOf(identity)]
      const result = this.#limits.take(id, [item], now + HOLD_LIFE_MS, caller)
      if (!isPromise(result)) return this.#settled(endpoint, result)
      return result.then((late) => this.#settled(endpoint, late)).catch(() => uncounted(route))
    } catch {
      return uncounted(route)
    }
  }

  #settled(endpoint: Limited, result: Hold | Short): Denial | null | Promise<null> {
    if (!isShort(result)) {
      return whenReady(result.settle(NOTHING_ELSE), () => null)
    }
    this.#exhausted.add(endpoint.key)
    return tooManyRequests(endpoint.route, this.#endOf(this.wait(endpoint)))
  }

  #endOf(waitMs: number): LimitEnd {
    return { waitMs, at: this.#clock.now() + waitMs }
  }
}

/** The item has spent what it held. */
const NOTHING_ELSE: ReadonlyMap<string, number> = new Map()

/** When a limit is over: after this time, and at this one, in milliseconds since the epoch. */
export interface LimitEnd {
  readonly waitMs: number
  readonly at: number
}

/** `requestsPerMinute` is used up. */
export function tooManyRequests(route: string, { waitMs, at }: LimitEnd): Denial {
  const reason = `the requests of this minute at the model route ${route} (requestsPerMinute) are used up until ${rfc3339(at)}`
  return deny('rate_limited', reason, { retryAfterMs: waitMs })
}

function uncounted(route: string): Denial {
  return deny('state_unavailable', `the requests of the model route ${route} (requestsPerMinute) cannot be counted now`)
}
