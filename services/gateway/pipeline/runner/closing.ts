import type { Clock } from '@plat/core'
import type { Rec } from '@plat/ledger'
import {
  type Body,
  type Call,
  type Denial,
  type Ending,
  type Fact,
  type Head,
  type Identity,
  type Outcome,
  type RequestContext,
  statusOf,
  unresolved,
} from '../../call/index.ts'
import type { LiveCalls } from '../live.ts'
import type { RunnerMetrics } from '../metrics.ts'
import type { Plane } from '../plane.ts'
import type { GatewayRequest, GovernedCall } from './call.ts'
import type { CallEnd } from './call-abort.ts'
import type { Recorder } from './recorder.ts'
import { encodeFrames } from './relay.ts'
import type { Settlement } from './settlement.ts'

/** Status recorded for a call whose caller left before the response; it is never sent. */
const CALLER_LEFT = 499

export interface EndedCall extends Call<Fact> {
  readonly identity: Identity
  readonly received: Body | null
}

/** Notified when calls have ended, after the response. Its methods must not throw. */
export interface CallObserver {
  /** `record` is the last record of the call, null when it leaves none; `at` is in milliseconds since the epoch. */
  ended(call: EndedCall, outcome: Outcome, record: Rec | null, at: number): void
  /** Called for a request that was refused because it could not be read. */
  turnedAway?(request: RequestContext, record: Rec, at: number, identity: Identity): void
}

export interface ClosingOptions {
  readonly live: LiveCalls
  readonly clock: Clock
  readonly metrics: RunnerMetrics
  /** Notified in this order when a call has ended. */
  readonly observers?: readonly CallObserver[]
}

/** Ends a call: sends the refusal, if any, settles the stages, writes the last record, and notifies the observers. */
export class Closing {
  readonly #options: ClosingOptions
  readonly #recorder: Recorder
  readonly #settlement: Settlement
  readonly #observers: readonly CallObserver[]

  constructor(options: ClosingOptions, recorder: Recorder, settlement: Settlement) {
    this.#options = options
    this.#recorder = recorder
    this.#settlement = settlement
    this.#observers = options.observers ?? []
  }

  /** Sends the refusal, if any. Closes the connection when the response can neither be completed nor end with an error. */
  respond(call: GovernedCall, plane: Plane, { ending, denial }: CallEnd): void {
    if (ending === 'complete' || ending === 'suspended') return
    if (denial === null) call.sink.destroy()
    else if (!call.sink.headSent) this.refuse(call.request, call, plane, denial)
    else if (call.plan.row.reply === 'frames') this.#abort(call, plane, denial)
  }

  #abort(call: GovernedCall, plane: Plane, denial: Denial): void {
    try {
      const frames = plane.abort(call, denial)
      if (frames === null) {
        call.sink.destroy()
        return
      }
      const last = encodeFrames(plane, frames)
      call.bytesDown += last.byteLength
      if (last.byteLength > 0) call.sink.write(last)
      call.sink.end()
    } catch (error) {
      call.request.internalError('writing the refusal', error)
      call.sink.destroy()
    }
  }

  /** Refuses a request of an authenticated caller that could not be read, and records the refusal. */
  refuseUnread(request: GatewayRequest, identity: Identity, plane: Plane, denial: Denial): void {
    this.#options.metrics.decided('deny', unresolved.server)
    this.refuse(request, null, plane, denial)
    const record = this.#recorder.unread(request, identity, denial)
    const at = this.#options.clock.now()
    for (const observer of this.#observers) observer.turnedAway?.(request, record, at, identity)
  }

  refuse(request: GatewayRequest, call: GovernedCall | null, plane: Plane, denial: Denial): void {
    let response: { readonly head: Head; readonly bytes: Uint8Array }
    try {
      const { head, frame } = plane.refuse(request, call, denial)
      response = { head, bytes: encodeFrames(plane, [frame]) }
    } catch (error) {
      request.internalError('writing the refusal', error)
      response = plainRefusal(request.id, denial)
    }
    const now = this.#options.clock.monotonic()
    if (call !== null) call.bytesDown += response.bytes.byteLength
    request.sink.reply(response.head, call?.overheadMs(now) ?? request.overheadMs(now, 0), response.bytes)
    if (call === null) this.#options.metrics.responded(unresolved.server, '', statusOf(denial))
  }

  /** Ends a call: composes the outcome, settles the stages in reverse order, writes the record. A second call has no effect. */
  close(call: GovernedCall, { ending, denial }: CallEnd): undefined | Promise<void> {
    if (call.outcome !== null) return undefined
    const now = this.#options.clock.monotonic()
    const outcome = outcomeOf(call, { ending, denial }, now)
    call.outcome = outcome
    const settlement = this.#settlement
    const sent = call.markings.length === 0 || outcome.result !== 'completed' ? undefined : settlement.marked(call)
    const settling =
      sent === undefined ? settlement.settle(call, outcome) : sent.then(() => settlement.settle(call, outcome))
    if (settling !== undefined)
      return settling.then(() => this.#finish(call, outcome, denial, this.#options.clock.monotonic()))
    this.#finish(call, outcome, denial, now)
    return undefined
  }

  /** `now`: monotonic milliseconds. */
  #finish(call: GovernedCall, outcome: Outcome, denial: Denial | null, now: number): void {
    const record = this.#recorder.end(call, outcome, denial, now)
    const at = this.#options.clock.now()
    for (const observer of this.#observers) observer.ended(call, outcome, record, at)
    this.#count(call, outcome)
    this.#options.live.remove(call)
  }

  #count(call: GovernedCall, outcome: Outcome): void {
    const { metrics } = this.#options
    const { server } = call.facts.target
    metrics.responded(server, call.method, outcome.status)
    if (!call.forwarded) {
      if (outcome.result === 'denied') metrics.decided('deny', server)
      return
    }
    if (outcome.usageSource === 'cached') return
    metrics.upstream(server, outcome.upstreamMs / 1000)
    // `internal` is a bug of the gateway, not a failure of the upstream.
    if (outcome.result === 'failed' && outcome.code !== 'internal') metrics.upstreamFailed(server)
  }
}

function outcomeOf(call: GovernedCall, { ending, denial }: CallEnd, monotonic: number): Outcome {
  return {
    result: resultOf(call, ending),
    code: denial?.code ?? null,
    forwarded: call.forwarded,
    status: denial !== null ? statusOf(denial) : ending !== 'client' || call.sink.headSent ? call.status : CALLER_LEFT,
    usage: call.tally.usage,
    usageSource: call.tally.usageSource,
    costMicros: call.tally.costMicros,
    ...(call.tally.media !== undefined && { media: call.tally.media }),
    ...(call.tally.batch !== undefined && { batch: call.tally.batch }),
    attempts: call.attempts,
    frames: call.frames,
    bytesUp: call.bytesUp,
    bytesDown: call.bytesDown,
    upstreamMs: call.upstreamMs,
    overheadMs: call.overheadMs(monotonic),
  }
}

function resultOf(call: GovernedCall, ending: Ending): Outcome['result'] {
  if (ending === 'complete') return 'completed'
  if (ending === 'suspended') return 'suspended'
  if (ending === 'client') return 'cancelled'
  if (ending === 'died') return 'failed'
  return call.forwarded && call.abort.reason !== 'denied' ? 'cut' : 'denied'
}

/** The refusal when the plane failed to render one. */
function plainRefusal(id: string, { code, reason }: Denial): { readonly head: Head; readonly bytes: Uint8Array } {
  const body = JSON.stringify({ error: code, message: reason, requestId: id })
  return { head: { status: 500, headers: { 'content-type': 'application/json' } }, bytes: Buffer.from(body) }
}
