import { type Clock, isPromise, NOWHERE, reasonOf } from '@plat/core'
import type { Ledgers, OpenIntent, Rec, RecKind, RecordWaiter } from '@plat/ledger'
import {
  type Body,
  type Call,
  type Denial,
  type Ending,
  type Fact,
  type Head,
  type Identity,
  type Message,
  type Outcome,
  type RequestContext,
  type Snapshot,
  statusOf,
  unresolved,
} from '../../call/index.ts'
import type { LiveCalls } from '../live.ts'
import type { RunnerLog, RunnerMetrics } from '../metrics.ts'
import type { Plane } from '../plane.ts'
import { type GatewayRequest, type GovernedCall, nothingUsed } from './call.ts'
import { aborted, CallAbort, type CallEnd } from './call-abort.ts'
import type { Runnable } from './plan.ts'
import {
  decisionRecord,
  intentRecord,
  messageRecord,
  type OutcomeParts,
  outcomeRecord,
  type Prices,
  unreadRecord,
} from './record.ts'
import { encodeFrames } from './relay.ts'
import { applyVerdict } from './verdict.ts'

/** Time limit of one stage or review to settle, in milliseconds. */
const SETTLE_DEADLINE_MS = 10_000

/** The outcome with which stages are settled before a second pass: nothing was forwarded, and the call has not ended. */
export const rewound: Outcome = {
  result: 'rewound',
  code: null,
  forwarded: false,
  status: 0,
  ...nothingUsed,
  attempts: [],
  frames: 0,
  bytesUp: 0,
  bytesDown: 0,
  upstreamMs: 0,
  overheadMs: 0,
}

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
  turnedAway?(request: RequestContext, record: Rec, at: number): void
}

/** Dependencies of `Closing`. */
export interface ClosingParts {
  readonly ledgers: Ledgers
  readonly live: LiveCalls
  readonly clock: Clock
  readonly metrics: RunnerMetrics
  readonly log: RunnerLog
  /** Returns the revision of the policies of a snapshot, for the records of calls that no policy decided. */
  readonly policyRevision?: (snapshot: Snapshot) => string
  /** Returns the prices of a snapshot, for the records of calls with a cost. */
  readonly prices?: (snapshot: Snapshot) => Prices
  /** Estimates the energy of a model call for its record. Absent: records have no estimate. */
  readonly estimate?: OutcomeParts['estimate']
  /** Notified in this order. */
  readonly observers?: readonly CallObserver[]
}

/** Ends a call: sends the refusal, if any, settles the stages, and writes the last record. */
export class Closing {
  readonly #parts: ClosingParts
  readonly #observers: readonly CallObserver[]
  readonly #clock: Clock

  constructor(parts: ClosingParts) {
    this.#parts = parts
    this.#observers = parts.observers ?? []
    this.#clock = parts.clock
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
    this.#parts.metrics.decided('deny', unresolved.server)
    this.refuse(request, null, plane, denial)
    const record = unreadRecord(request, identity, denial, this.#revision(request.snapshot))
    this.#append(identity, record, ignore)
    const at = this.#clock.now()
    for (const observer of this.#observers) observer.turnedAway?.(request, record, at)
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
    const now = this.#clock.monotonic()
    if (call !== null) call.bytesDown += response.bytes.byteLength
    request.sink.reply(response.head, call?.overheadMs(now) ?? request.overheadMs(now, 0), response.bytes)
    if (call === null) this.#parts.metrics.responded(unresolved.server, '', statusOf(denial))
  }

  /** Ends a call: composes the outcome, settles the stages in reverse order, writes the record. A second call has no effect. */
  close(call: GovernedCall, { ending, denial }: CallEnd): undefined | Promise<void> {
    if (call.outcome !== null) return undefined
    const now = this.#clock.monotonic()
    const outcome = outcomeOf(call, { ending, denial }, now)
    call.outcome = outcome
    const sent = call.markings.length === 0 || outcome.result !== 'completed' ? undefined : this.#sent(call)
    const settling = sent === undefined ? this.settle(call, outcome) : sent.then(() => this.settle(call, outcome))
    if (settling !== undefined) return settling.then(() => this.#record(call, outcome, denial, this.#clock.monotonic()))
    this.#record(call, outcome, denial, now)
    return undefined
  }

  /** Notifies the reviews that mark the session that the whole response was written. Returns a promise only if one of them does. */
  #sent(call: GovernedCall): undefined | Promise<void> {
    const waiting: Promise<void>[] = []
    for (const marking of call.markings) {
      try {
        const sent = marking.sent?.()
        if (isPromise(sent)) waiting.push(this.#inTime(call, 'marking the session', sent))
      } catch (error) {
        call.request.internalError('marking the session', error)
      }
    }
    return waiting.length === 0 ? undefined : Promise.all(waiting).then(() => {})
  }

  /** `now`: monotonic milliseconds. */
  #record(call: GovernedCall, outcome: Outcome, denial: Denial | null, now: number): void {
    const record = this.#closingRecord(call, outcome, denial, now)
    // Not awaited: the response has been sent, and the ledger makes records durable in order.
    if (record !== null) this.#append(call.identity, record, ignore, call.intent)
    const at = this.#clock.now()
    for (const observer of this.#observers) observer.ended(call, outcome, record, at)
    this.#count(call, outcome)
    this.#parts.live.remove(call)
  }

  #closingRecord(call: GovernedCall, outcome: Outcome, denial: Denial | null, now: number): Rec | null {
    const revision = this.#revisionOf(call)
    const refusal = outcome.result === 'denied' || outcome.result === 'cut' ? denial : null
    if (call.plan.row.record === 'denials') {
      if (refusal !== null) return decisionRecord(call, refusal, revision)
      if (outcome.result !== 'failed' && call.dlp === null) return null
    }
    if (refusal !== null && !call.intended && !call.forwarded) {
      return decisionRecord(call, refusal, revision)
    }
    const ms = now - call.request.startedAt
    const { prices, estimate } = this.#parts
    return outcomeRecord(call, outcome, denial, { revision, ms, prices, estimate })
  }

  /** Returns the revision of the policies that decided the call, or of those in force if none did. */
  #revisionOf({ facts: { decision }, snapshot }: GovernedCall): string {
    return decision.revision || this.#revision(snapshot)
  }

  #revision(snapshot: Snapshot): string {
    return this.#parts.policyRevision?.(snapshot) ?? ''
  }

  #count(call: GovernedCall, outcome: Outcome): void {
    const { metrics } = this.#parts
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

  /** Settles each stage that admitted the call, once, in reverse order. A stage that fails does not prevent the others from settling. */
  settle(call: GovernedCall, outcome: Outcome): undefined | Promise<void> {
    const late = call.late === null ? undefined : this.#settleOne(call, call.late, outcome)
    return late === undefined
      ? this.#settleFrom(call.admitted - 1, call, outcome)
      : this.#settleAfter(late, call.admitted, call, outcome)
  }

  #settleFrom(last: number, call: GovernedCall, outcome: Outcome): undefined | Promise<void> {
    for (let place = last; place >= 0; place--) {
      const stage = call.plan.stages[place]
      const settling = stage === undefined ? undefined : this.#settleOne(call, stage, outcome)
      if (settling !== undefined) return this.#settleAfter(settling, place, call, outcome)
    }
    return undefined
  }

  /** Settles the stages before `place` after the one at `place` has settled. */
  async #settleAfter(settling: Promise<void>, place: number, call: GovernedCall, outcome: Outcome): Promise<void> {
    await settling
    await this.#settleFrom(place - 1, call, outcome)
  }

  /** Returns undefined when the stage settled synchronously, which saves an await. */
  #settleOne(call: GovernedCall, stage: Runnable, outcome: Outcome): undefined | Promise<void> {
    try {
      const settling = stage.settle?.(call, outcome)
      return isPromise(settling) ? this.#inTime(call, `settling ${stage.name}`, settling) : undefined
    } catch (error) {
      call.request.internalError(`settling ${stage.name}`, error)
      return undefined
    }
  }

  async #inTime(call: GovernedCall, what: string, settling: Promise<void>): Promise<void> {
    const limit = new CallAbort()
    const cancel = this.#clock.after(SETTLE_DEADLINE_MS, () => limit.stop('deadline', null))
    try {
      if ((await limit.until(settling)) === aborted) throw new Error('timed out')
    } catch (error) {
      call.request.internalError(what, error)
    } finally {
      cancel()
    }
  }

  /** Handles a verdict that arrived after the call was aborted: settles the stage with the others, or now if the call has ended. */
  settleLate(call: GovernedCall, stage: Runnable, verdict: unknown): void {
    if (applyVerdict(call, stage, verdict) !== null) return
    if (call.outcome === null) call.late = stage
    else void this.#settleOne(call, stage, call.outcome)
  }

  /** Writes the intent record. Resolves to false when it could not be made durable; the caller applies the audit failure policy. */
  intend(call: GovernedCall): Promise<boolean | typeof aborted> {
    call.intended = true
    call.intent = { seq: -1, place: NOWHERE }
    const record = intentRecord(call, this.#revisionOf(call))
    return call.abort.untilCalledBack((onResult) => this.#append(call.identity, record, onResult, call.intent))
  }

  /** Records requests of the upstream to the caller. Resolves to false when a record could not be made durable. */
  async recordMessages(call: GovernedCall, messages: readonly Message[]): Promise<boolean> {
    const records = messages.map(
      (message) =>
        new Promise<boolean>((onResult) => this.#append(call.identity, messageRecord(call, message), onResult)),
    )
    return (await Promise.all(records)).every((durable) => durable)
  }

  /** Appends a record. Calls `onResult` with false when it could not be made durable. */
  #append(identity: Identity, record: Rec, onResult: (durable: boolean) => void, intent?: OpenIntent): void {
    const entry = new Entry(record.kind, this.#parts.log, onResult, intent)
    try {
      this.#parts.ledgers.of(identity.tenant).enter(record, entry)
    } catch (error) {
      entry.failed(error)
    }
  }
}

/** A record that waits in the ledger. Its loss is logged here and counted by the ledger. */
class Entry implements RecordWaiter {
  readonly #kind: RecKind
  readonly #log: RunnerLog
  readonly #onResult: (durable: boolean) => void
  readonly intent: OpenIntent | undefined

  constructor(kind: RecKind, log: RunnerLog, onResult: (durable: boolean) => void, intent: OpenIntent | undefined) {
    this.intent = intent
    this.#kind = kind
    this.#log = log
    this.#onResult = onResult
  }

  durable(): void {
    this.#onResult(true)
  }

  failed(error: unknown): void {
    this.#log.error({ kind: this.#kind, error: reasonOf(error) }, 'a record could not be made durable')
    this.#onResult(false)
  }
}

/** For records that are not awaited. */
function ignore(): void {}

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
