import { type Clock, isPromise, type SharedPool } from '@plat/core'
import type { Exchange, TunnelRequest } from '@plat/http'
import { OVERLOAD_RETRY_MS, type OverloadState } from '@plat/process'
import {
  type Denial,
  deny,
  type Facts,
  type Identity,
  isDenial,
  type Message,
  type Parsed,
  type Reply,
  statusOf,
} from '../../call/index.ts'
import type { NestedRequest, RunNested } from '../nested.ts'
import type { Plane } from '../plane.ts'
import type { Wait } from '../stage.ts'
import { awaitApproval } from './await-approval.ts'
import { GatewayRequest, GovernedCall } from './call.ts'
import { aborted, abortedBy, CallAbort, type CallEnd, failed, refused } from './call-abort.ts'
import { Closing } from './closing.ts'
import { ResponseSink, removeCredentials, wireOf } from './exchange.ts'
import type { RunnerOptions } from './options.ts'
import { type Plan, planRows, type Runnable, unknownOperation } from './plan.ts'
import { Recorder } from './recorder.ts'
import { relay } from './relay.ts'
import { applyVerdict, rewound, Settlement } from './settlement.ts'
import { TunnelSink, tunnel, wireOfTunnel } from './tunnel.ts'

/** Time limit of one stage, in milliseconds. Waiting for an approval does not count. */
const STAGE_DEADLINE_MS = 30_000

const overloaded = deny('overloaded', 'the gateway is overloaded; call again', { retryAfterMs: OVERLOAD_RETRY_MS })

/** Runs calls through the pipeline. Only the runner writes responses of planes. */
export interface Runner {
  /** Runs one HTTP request. Resolves when the call has ended and its record was passed to the ledger. Never rejects. */
  run(exchange: Exchange, plane: Plane): Promise<void>
  /** The same for a CONNECT request. */
  connect(request: TunnelRequest, plane: Plane): Promise<void>
  /** The same for a request that did not arrive through `node:http`. */
  govern(request: GatewayRequest, plane: Plane): Promise<void>
  /** The same for a request that is part of another one, whose caller was authenticated. */
  readonly nested: RunNested
  /** Stops rechecking long calls when the snapshot changes. */
  close(): void
}

/** Throws if a stage is out of order, or one that runs for every operation is missing. */
export function createRunner(options: RunnerOptions): Runner {
  return new PipelineRunner(options)
}

class PipelineRunner implements Runner {
  readonly #options: RunnerOptions
  readonly #plans: ReadonlyMap<string, Plan>
  readonly #clock: Clock
  readonly #recorder: Recorder
  readonly #settlement: Settlement
  readonly #closing: Closing
  readonly #overload: Pick<OverloadState, 'active'>
  readonly #bytes: SharedPool | null
  readonly close: () => void

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#plans = planRows(options.matrix, options.stages, options.reviews)
    this.#clock = options.clock
    this.#recorder = new Recorder(options)
    this.#settlement = new Settlement(options.clock)
    this.#closing = new Closing(options, this.#recorder, this.#settlement)
    this.#overload = options.overload ?? { active: false }
    this.#bytes = options.bytes ?? null
    this.close = options.snapshots.onChange(() => options.live.check())
  }

  run(exchange: Exchange, plane: Plane): Promise<void> {
    const { snapshots, clock, log } = this.#options
    const { id, response } = exchange
    const abort = new CallAbort()
    const sink = new ResponseSink(id, response, (complete) => {
      if (!complete) abort.stop('client', null)
      request.release()
    })
    const wire = wireOf(exchange.request)
    const request = new GatewayRequest({ id, wire, sink, abort, snapshot: snapshots.current, clock, log })
    return this.govern(request, plane)
  }

  connect(tunnelRequest: TunnelRequest, plane: Plane): Promise<void> {
    const { snapshots, clock, log } = this.#options
    const { id } = tunnelRequest
    const abort = new CallAbort()
    const sink = new TunnelSink(tunnelRequest, () => abort.stop('client', null))
    const wire = wireOfTunnel(tunnelRequest)
    const request = new GatewayRequest({ id, wire, sink, abort, snapshot: snapshots.current, clock, log })
    // A tunnel's response is not buffered, so only the end of the call is awaited.
    request.release()
    return this.govern(request, plane)
  }

  readonly nested: RunNested = ({ id, identity, wire, plane, sink, endsAtDrain }: NestedRequest) => {
    const { snapshots, clock, log } = this.#options
    const abort = new CallAbort()
    const snapshot = snapshots.current
    const own = { id, wire, sink, abort, snapshot, clock, log }
    const request = new GatewayRequest({ ...own, authenticated: identity, endsAtDrain })
    const ended = this.govern(request, plane).finally(() => request.release())
    return { ended, stop: (reason, denial) => abort.stop(reason, denial) }
  }

  /** The steps of a call, in one async function that awaits a step only if it returned a promise: an await costs more than most steps. */
  async govern(request: GatewayRequest, plane: Plane): Promise<void> {
    try {
      if (this.#overload.active && !endsWork(request, plane, null))
        return this.#closing.refuse(request, null, plane, overloaded)
      const known = this.#identify(request)
      const identity = isPromise(known) ? await known : known
      if (isDenial(identity)) return this.#closing.refuse(request, null, plane, identity)
      removeCredentials(request.wire)
      request.retainIn(this.#bytes, identity)
      let parsed: Parsed | Denial
      try {
        const reading = plane.read(request, identity)
        parsed = checkParsed(isPromise(reading) ? await reading : reading)
      } catch (error) {
        parsed = request.internalError('reading the request', error)
      }
      if (isDenial(parsed)) return this.#closing.refuseUnread(request, identity, plane, parsed)
      const call = new GovernedCall(request, identity, parsed, this.#plans.get(parsed.operation) ?? unknownOperation)
      call.endsWork = endsWork(request, plane, parsed)
      if (this.#overload.active && !call.endsWork) return this.#closing.refuse(request, null, plane, overloaded)
      let ended: CallEnd | null
      try {
        const admitting = this.#enter(call) ?? this.#admit(call, plane)
        ended = isPromise(admitting) ? await admitting : admitting
        if (ended === null && this.#needsIntent(call)) ended = this.#recorded(call, await this.#recorder.intend(call))
        if (ended === null) {
          const began = this.#clock.monotonic()
          let reply: ForwardResult
          try {
            const forwarding = this.#forward(call, plane)
            reply = isPromise(forwarding) ? await call.abort.until(forwarding) : forwarding
            if (reply === aborted && isPromise(forwarding))
              forwarding.then(
                (late) => discardReply(late, request),
                (error) => request.internalError('forwarding', error),
              )
          } catch (error) {
            reply = request.internalError('forwarding', error)
          }
          call.upstreamMs += this.#clock.monotonic() - began
          const relaying = this.#relay(call, plane, reply)
          ended = isPromise(relaying) ? await relaying : relaying
        }
      } catch (error) {
        ended = refused(request.internalError('the call', error))
      }
      const closing = this.#end(call, plane, ended)
      if (closing !== undefined) await closing
    } catch (error) {
      request.internalError('the runner', error)
      request.sink.destroy()
    } finally {
      request.release()
    }
  }

  /** Ends a call whose request was read: it is responded to, settled and recorded exactly once. */
  #end(call: GovernedCall, plane: Plane, ended: CallEnd): undefined | Promise<void> {
    if (ended.denial !== null) call.stop('denied', ended.denial)
    this.#closing.respond(call, plane, ended)
    return this.#closing.close(call, ended)
  }

  /** Authenticates the caller. Returns a plain value when the token is cached, as for most calls. */
  #identify(request: GatewayRequest): Identity | Denial | Promise<Identity | Denial> {
    try {
      const known = request.authenticated ?? this.#options.authenticate(request)
      if (!isPromise(known)) return checkIdentity(known)
      return known.then(checkIdentity, (error) => request.internalError('authentication', error))
    } catch (error) {
      return request.internalError('authentication', error)
    }
  }

  #enter(call: GovernedCall): CallEnd | null {
    if (call.plan === unknownOperation)
      return refused(deny('not_built', `${call.operation} is not built yet in this version`))
    if (!this.#options.live.add(call)) return refused(deny('backlog_full', 'too many calls are under way'))
    return null
  }

  /** Runs the stages in order. Returns null when all have admitted the call and a recheck passed. Returns a promise only if it has to wait. */
  #admit(call: GovernedCall, plane: Plane): CallEnd | null | Promise<CallEnd | null> {
    const { stages } = call.plan
    while (call.admitted < stages.length) {
      const stage = stages[call.admitted]
      if (stage === undefined) break
      if (call.abort.reason !== null) return abortedBy(call.abort)
      const verdict = this.#callStage(call, stage)
      const result = isPromise(verdict)
        ? this.#inTime(call, stage, verdict).then((late) => this.#handleVerdict(call, stage, late, plane))
        : this.#handleVerdict(call, stage, verdict, plane)
      if (isPromise(result)) return result.then((ended) => ended ?? this.#admit(call, plane))
      if (result !== null) return result
    }
    const no = call.recheck(this.#clock.now()) ?? requireApproval(call.facts)
    return no === null ? null : refused(no)
  }

  /** Applies the verdict of a stage. Returns null to continue with the stage at `call.admitted`. */
  #handleVerdict(
    call: GovernedCall,
    stage: Runnable,
    verdict: unknown,
    plane: Plane,
  ): CallEnd | null | Promise<CallEnd | null> {
    if (verdict === aborted) return abortedBy(call.abort)
    const no = applyVerdict(call, stage, verdict)
    if (no === null) {
      call.admitted++
      return null
    }
    return isDenial(no) ? refused(no) : this.#wait(call, no, plane)
  }

  #callStage(call: GovernedCall, stage: Runnable): unknown {
    try {
      return stage.admit(call)
    } catch (error) {
      return call.request.internalError(`the step ${stage.name}`, error)
    }
  }

  async #inTime(call: GovernedCall, stage: Runnable, verdict: Promise<unknown>): Promise<unknown> {
    const reason = `the step ${stage.name} gave no verdict in time`
    const by = { monotonic: this.#clock.monotonic(), ms: STAGE_DEADLINE_MS, code: 'internal', reason } as const
    try {
      return await call.within(verdict, by, (late) => this.#settlement.late(call, stage, late))
    } catch (error) {
      return call.request.internalError(`the step ${stage.name}`, error)
    }
  }

  /** Waits for an approval. Resolves to null when it was granted: the call restarts at the first stage on the current snapshot. */
  async #wait(call: GovernedCall, wait: Wait, plane: Plane): Promise<CallEnd | null> {
    if (call.pass === 2) return refused(deny('approval_stale', 'what was approved has changed'))
    this.#options.metrics.decided('require_approval', call.facts.target.server)
    const released = await awaitApproval(call, wait, plane, this.#clock)
    if (released !== 'granted') return released
    await this.#settlement.settle(call, rewound)
    call.rewind(this.#options.snapshots.current)
    return null
  }

  #needsIntent({ facts, plan: { row } }: GovernedCall): boolean {
    return row.record === 'full' && (this.#options.auditFailurePolicy === 'closed' || facts.hold !== null || row.long)
  }

  /** Returns null when the intent is durable, or the audit failure policy permits the call without it. */
  #recorded(call: GovernedCall, durable: boolean | typeof aborted): CallEnd | null {
    if (durable === aborted) return abortedBy(call.abort)
    if (!durable && this.#options.auditFailurePolicy === 'closed') {
      call.intended = false
      return refused(deny('audit_unavailable', 'the audit ledger cannot be written'))
    }
    // The commit took time, so the conditions of admission are checked again.
    const stale = call.recheck(this.#clock.now())
    return stale === null ? null : refused(stale)
  }

  #relay(call: GovernedCall, plane: Plane, reply: ForwardResult): CallEnd | Promise<CallEnd> {
    if (reply === aborted) return abortedBy(call.abort)
    if (!isReply(reply)) {
      if (isDenial(reply) && reply.attempts !== undefined) call.attempts = reply.attempts
      return refusedByPlane(reply)
    }
    if (reply.kind !== call.plan.row.reply) {
      discardReply(reply, call.request)
      return failed(deny('internal', `${call.operation} cannot be answered by ${reply.kind}`))
    }
    call.status = reply.head.status
    call.attempts = reply.attempts
    if (reply.kind === 'tunnel') return tunnel(call, reply, this.#clock)
    return relay(call, reply, { plane, clock: this.#clock, recordMessages: this.#recordMessages })
  }

  /** Resolves to null when the messages were recorded, or the audit failure policy permits them without a record. */
  readonly #recordMessages = async (call: GovernedCall, messages: readonly Message[]): Promise<Denial | null> => {
    const durable = await this.#recorder.messages(call, messages)
    if (durable || this.#options.auditFailurePolicy === 'open') return null
    return deny('audit_unavailable', 'the audit ledger cannot be written')
  }

  #forward(call: GovernedCall, plane: Plane): ReturnType<Plane['forward']> {
    this.#options.metrics.decided('allow', call.facts.target.server)
    call.forwarded = true
    call.bytesUp = call.body?.size ?? call.body?.bytes.byteLength ?? 0
    return plane.forward(call, call.sink.headSent ? 'sent' : 'unsent')
  }
}

type ForwardResult = Reply | Denial | typeof aborted

/** Returns true when the request frees resources; see `Plane.endsWork`. */
function endsWork(request: GatewayRequest, plane: Plane, parsed: Parsed | null): boolean {
  return plane.endsWork?.(request, parsed) === true
}

/** The end of a call that the plane refused instead of returning a reply. */
function refusedByPlane(refusal: unknown): CallEnd {
  if (!isDenial(refusal)) return failed(deny('internal', 'the upstream gave no answer'))
  return statusOf(refusal) >= 500 ? failed(refusal) : refused(refusal)
}

/** Returns a denial for a call that policy allows only with an approval and that has none, as when the approval stage does not run. */
function requireApproval({ decision, approval }: Facts): Denial | null {
  if (decision.action === 'allow' || approval !== null) return null
  const { reason, policy, rule } = decision
  return deny('policy_denied', `${reason} (this cannot be approved here)`, { policy, rule })
}

/** Closes a reply that is not delivered: it arrived after the call ended, or is of the wrong kind. */
function discardReply(reply: Reply | Denial, request: GatewayRequest): void {
  if (!isReply(reply)) return
  if (reply.kind === 'tunnel') reply.socket.destroy()
  else if (Symbol.asyncIterator in reply.frames) {
    const leaving = reply.frames[Symbol.asyncIterator]().return?.()
    leaving?.then(undefined, (error) => request.internalError('leaving the upstream', error))
  }
}

function isReply(value: unknown): value is Reply {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return false
  return (value.kind === 'frames' && 'frames' in value) || (value.kind === 'tunnel' && 'socket' in value)
}

function checkIdentity(value: unknown): Identity | Denial {
  return isDenial(value) || isIdentity(value) ? value : deny('internal', 'authentication gave no verdict')
}

function isIdentity(value: unknown): value is Identity {
  return typeof value === 'object' && value !== null && 'session' in value && 'jti' in value
}

/** Longest name of a tool, model, skill, resource or prompt, in characters: it is in each record of a call. */
const MAX_NAME_CHARS = 8192

function checkParsed(value: unknown): Parsed | Denial {
  if (isDenial(value)) return value
  if (!isParsed(value)) return deny('internal', 'the request was not understood')
  const isLong = (value.name?.length ?? 0) > MAX_NAME_CHARS
  return isLong ? deny('invalid_request', `names must have at most ${MAX_NAME_CHARS} characters`) : value
}

function isParsed(value: unknown): value is Parsed {
  return typeof value === 'object' && value !== null && 'operation' in value && 'body' in value
}
