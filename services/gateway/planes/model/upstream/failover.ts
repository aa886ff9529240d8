import { type Clock, isPromise } from '@plat/core'
import {
  type Call,
  type Denial,
  deny,
  type Frame,
  isDenial,
  type Outcome,
  type Reply,
  type StreamEnd,
  UpstreamError,
} from '../../../call/index.ts'
import { EventFrames } from '../../wire/events.ts'
import type { SkipReason } from '../methods.ts'
import type { FailoverMetrics } from '../metrics.ts'
import { noteAnswering } from '../note.ts'
import { ModelBody } from '../request.ts'
import type { ModelEndpoint } from './endpoint.ts'
import type { Circuits, Forwarding, Repeatable } from './forward.ts'
import { type EndpointRates, tooManyRequests } from './rates.ts'
import type { Retries } from './retries.ts'

/** Dependencies of failover. */
export interface Failover {
  readonly clock: Clock
  readonly circuits: Circuits
  readonly rates: EndpointRates
  readonly attemptTimeoutMs: number
  readonly metrics: FailoverMetrics
  /** Measures the latency of endpoints. */
  readonly balancer: LatencyMeter
  /** Returns why the endpoint cannot serve this call, or null when it can. */
  unfit(endpoint: ModelEndpoint, call: Call<'target' | 'hold'>): SkipReason | null
  /** Returns an attempt that is not started yet, or a denial when this endpoint cannot serve the request. */
  attempt(turn: Turn): Forwarding | Denial
}

/** Measures how long the responses of endpoints take to begin, by kind of call. */
export interface LatencyMeter {
  /** Called when an attempt begins. */
  started(endpoint: ModelEndpoint, kind: string): void
  /** Called when its response has begun after `ms`; `failed`: it failed instead; null: it was aborted. */
  ended(endpoint: ModelEndpoint, kind: string, ms: number | 'failed' | null): void
}

/** Returns the kind of a call for latencies: streams begin before a whole response is complete. */
export function kindOf({ method, body }: Pick<Call, 'method' | 'body'>): string {
  return body instanceof ModelBody && body.request.stream ? `${method} stream` : method
}

/** A call, and the endpoints of its route. */
export interface Ways {
  readonly call: Call<'identity' | 'target' | 'hold'>
  readonly endpoints: readonly ModelEndpoint[]
  /** Kind of call whose latency is measured; null: not measured. */
  readonly measured: string | null
  /** Null: failed requests are not repeated. */
  readonly retries: Retries | null
  /** A wait for an approval has already opened an event stream. */
  readonly sent: boolean
}

export interface Turn extends Pick<Ways, 'call' | 'sent'> {
  readonly endpoint: ModelEndpoint
  /** Returns true if another attempt follows a 429 or 408. */
  readonly movesOn: (repeatable: Repeatable) => boolean
}

/**
 * Tries the endpoints of a route in order until one responds (docs/spec/gateway.md, `fallbacks` and `modelRouting`). An endpoint has
 * responded when the first part of a stream, or a whole JSON body, was received. The caller gets nothing before that, and no other
 * endpoint is tried after it.
 */
export function tryInTurn(failover: Failover, ways: Ways): Promise<Reply | Denial> {
  return new Turns(failover, ways).run()
}

class Turns {
  readonly #failover: Failover
  readonly #ways: Ways
  readonly #call: Ways['call']
  #endpoints: Ways['endpoints']
  readonly #attempts: Outcome['attempts'][number][] = []
  /** The endpoint that failed last, with its denial. */
  #last: { readonly endpoint: ModelEndpoint; readonly denial: Denial } | null = null

  /** The denial of the first endpoint for which the request could not be translated. */
  #untranslated: Denial | null = null
  /** The requests of an endpoint could not be counted. */
  #uncounted: Denial | null = null

  constructor(failover: Failover, ways: Ways) {
    this.#failover = failover
    this.#ways = ways
    this.#call = ways.call
    this.#endpoints = ways.endpoints
  }

  async run(): Promise<Reply | Denial> {
    const { retries } = this.#ways
    let answer = await this.#round()
    while (answer === null && retries?.grant() === true) {
      this.#endpoints = await retries.next(this.#call.signal)
      answer = await this.#round()
    }
    return answer ?? this.#refusal()
  }

  /** Tries each endpoint once. Resolves to null when all failed. */
  async #round(): Promise<Reply | Denial | null> {
    const before = this.#attempts.length
    for (const [at, endpoint] of this.#endpoints.entries()) {
      const reason = this.#reason(endpoint)
      if (reason !== null) {
        this.#failover.metrics.skipped(endpoint.route, endpoint.label, reason)
        continue
      }
      const spare = this.#endpoints.slice(at + 1).some((other) => this.#reason(other) === null)
      const answer = await this.#try(endpoint, spare)
      if (answer !== null) return answer
    }
    // Endpoints with open circuits are used only if there is no other.
    const resort = this.#fit().find((one) => this.#failover.rates.wait(one) === 0)
    return this.#attempts.length === before && resort !== undefined ? this.#try(resort, false) : null
  }

  /** Returns why an endpoint is skipped, or null when it is not. */
  #reason(endpoint: ModelEndpoint): SkipReason | null {
    const { circuits, rates } = this.#failover
    const reason = this.#failover.unfit(endpoint, this.#call)
    if (reason !== null) return reason
    if (circuits.isOpen(endpoint)) return 'circuit'
    return rates.wait(endpoint) > 0 ? 'rate' : null
  }

  /** Resolves to null when the endpoint failed and another may be tried. */
  async #try(endpoint: ModelEndpoint, spare: boolean): Promise<Reply | Denial | null> {
    const { clock, circuits, rates, attemptTimeoutMs, metrics } = this.#failover
    const movesOn = (repeatable: Repeatable) => spare || this.#isGranted(endpoint, repeatable)
    const forwarding = this.#failover.attempt({ call: this.#call, sent: this.#ways.sent, endpoint, movesOn })
    if (isDenial(forwarding)) {
      metrics.skipped(endpoint.route, endpoint.label, 'dialect')
      this.#untranslated ??= forwarding
      return null
    }
    const counted = rates.take(endpoint, this.#call)
    const limited = isPromise(counted) ? await counted : counted
    if (limited !== null) {
      metrics.skipped(endpoint.route, endpoint.label, 'rate')
      if (limited.code !== 'rate_limited') this.#uncounted ??= limited
      return null
    }
    if (this.#last !== null && this.#last.endpoint !== endpoint)
      metrics.movedOn(endpoint.route, this.#last.endpoint.label, endpoint.label)
    circuits.enter(endpoint)
    this.#started(endpoint)
    const cancel = clock.after(attemptTimeoutMs, () => forwarding.expire())
    const answer = await begun(forwarding, this.#call.server).finally(() => {
      cancel()
      this.#ended(endpoint, forwarding)
    })
    this.#attempts.push(forwarding.attempt)
    if (!isDenial(answer)) return this.#won(endpoint, answer)
    this.#last = { endpoint, denial: answer }
    if (!forwarding.failed || this.#call.signal.aborted) return this.#refusal()
    if (forwarding.repeatable !== null) this.#ways.retries?.note(endpoint, forwarding.repeatable.waitMs)
    return null
  }

  /** Whether a busy endpoint, the last one of its round, gets the request again. */
  #isGranted(endpoint: ModelEndpoint, { waitMs }: Repeatable): boolean {
    return this.#ways.retries?.grant({ endpoint, waitMs }) === true
  }

  #started(endpoint: ModelEndpoint): void {
    if (this.#ways.measured !== null) this.#failover.balancer.started(endpoint, this.#ways.measured)
  }

  #ended(endpoint: ModelEndpoint, { failed, attempt }: Forwarding): void {
    const { measured } = this.#ways
    const result = failed ? 'failed' : this.#call.signal.aborted ? null : attempt.ms
    if (measured !== null) this.#failover.balancer.ended(endpoint, measured, result)
  }

  /** Returns the endpoints that can serve the call, now or later. */
  #fit(): readonly ModelEndpoint[] {
    return this.#endpoints.filter((one) => this.#failover.unfit(one, this.#call) === null)
  }

  #won(endpoint: ModelEndpoint, reply: Reply): Reply {
    noteAnswering(this.#call.wire, endpoint)
    return reply.kind === 'frames' ? { ...reply, attempts: this.#attempts } : reply
  }

  #refusal(): Denial {
    const denial = this.#last?.denial ?? this.#untranslated ?? this.#uncounted ?? this.#unfit()
    return { ...denial, attempts: this.#attempts }
  }

  /** Returns the denial when no endpoint can serve the call. */
  #unfit(): Denial {
    const { server } = this.#call
    const waits = this.#fit().map((one) => this.#failover.rates.wait(one))
    const waitMs = Math.min(...waits)
    if (waits.length > 0) return tooManyRequests(server, { waitMs, at: this.#failover.clock.now() + waitMs })
    const reasons = this.#endpoints.map((one) => this.#failover.unfit(one, this.#call))
    if (reasons.includes('credential'))
      return deny('upstream_credential', `the model route ${server} has no readable API key`)
    return deny('upstream_error', `no endpoint of the model route ${server} can take this call`)
  }
}

/** Waits for the response including the first part of a stream: a stream that fails before it counts as a failed attempt. */
async function begun(forwarding: Forwarding, server: string): Promise<Reply | Denial> {
  const reply = await forwarding.run()
  if (isDenial(reply) || reply.kind !== 'frames' || !(reply.frames instanceof EventFrames)) return reply
  const { frames } = reply
  try {
    return { ...reply, frames: new Begun(await frames.next(), frames) }
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    return deny('upstream_error', `the upstream of ${server} broke its stream before it had begun`)
  }
}

/** A stream whose first part has already been read. */
class Begun implements AsyncIterableIterator<readonly Frame[]> {
  #first: IteratorResult<readonly Frame[], StreamEnd> | null
  readonly #rest: EventFrames<Frame>

  constructor(first: IteratorResult<readonly Frame[], StreamEnd>, rest: EventFrames<Frame>) {
    this.#first = first
    this.#rest = rest
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<IteratorResult<readonly Frame[], StreamEnd>> {
    const first = this.#first
    this.#first = null
    return first === null ? this.#rest.next() : Promise.resolve(first)
  }

  return(): Promise<IteratorResult<readonly Frame[], StreamEnd>> {
    return this.#rest.return()
  }
}
