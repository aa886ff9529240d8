import type { Clock } from '@plat/core'
import type { ModelEndpoint } from './endpoint.ts'

const MINUTE_MS = 60_000

/** What of an endpoint its rate is about. */
type Limited = Pick<ModelEndpoint, 'key' | 'requestsPerMinute'>

/**
 * Requests that endpoints were sent in the minute that runs now, for all sessions together (document 3, `requestsPerMinute`). Minutes are
 * those of the clock on the wall; what was counted in the last one is forgotten as a whole.
 */
export class EndpointRates {
  readonly #clock: Pick<Clock, 'now'>
  readonly #sent = new Map<string, number>()
  #minute = 0

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Milliseconds until the endpoint may be asked; 0: it may now. */
  wait({ key, requestsPerMinute }: Limited): number {
    if (requestsPerMinute === null) return 0
    const now = this.#turn()
    return (this.#sent.get(key) ?? 0) < requestsPerMinute ? 0 : (this.#minute + 1) * MINUTE_MS - now
  }

  /** Counts a request, if the endpoint may be asked; else answers the milliseconds until it may. */
  take(endpoint: Limited): number {
    if (endpoint.requestsPerMinute === null) return 0
    const wait = this.wait(endpoint)
    if (wait === 0) this.#sent.set(endpoint.key, (this.#sent.get(endpoint.key) ?? 0) + 1)
    return wait
  }

  #turn(): number {
    const now = this.#clock.now()
    const minute = Math.floor(now / MINUTE_MS)
    if (minute !== this.#minute) {
      this.#minute = minute
      this.#sent.clear()
    }
    return now
  }
}
