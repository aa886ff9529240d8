import { type Clock, NOWHERE, reasonOf, type SharedPool } from '@plat/core'
import type { OpenIntent } from '@plat/ledger'
import {
  type AbortReason,
  type Body,
  type Call,
  type CallSignal,
  callingAgentOf,
  type Denial,
  type DlpAction,
  type DlpDirection,
  deny,
  type ErrorCode,
  type Fact,
  type Facts,
  type Identity,
  type Outcome,
  type Parsed,
  type RequestContext,
  type Snapshot,
  type WireRequest,
} from '../../call/index.ts'
import type { LiveCall } from '../live.ts'
import type { RunnerLog } from '../metrics.ts'
import type { Marking } from '../stage.ts'
import type { CallAbort } from './call-abort.ts'
import { DlpTally } from './dlp-tally.ts'
import type { Sink } from './exchange.ts'
import type { Plan, Runnable } from './plan.ts'
import type { CommonFields } from './record.ts'

/** The deadline of a call that has none. */
const NEVER = Number.POSITIVE_INFINITY

/** One request, with the connection to its caller. */
export class GatewayRequest implements RequestContext {
  readonly id: string
  readonly wire: WireRequest
  readonly snapshot: Snapshot
  readonly receivedAt: number
  /** Monotonic milliseconds. */
  readonly startedAt: number
  readonly sink: Sink
  readonly abort: CallAbort
  /** The caller of a nested request; null: it must be authenticated. */
  readonly authenticated: Identity | null
  /** See `NestedRequest`. */
  readonly endsAtDrain: boolean
  readonly #log: RunnerLog
  /** Counts the bytes that the request retains; null: they are not counted. */
  #pool: SharedPool | null = null
  #agent = ''
  #retained = 0
  /** How many of the call and its response have not ended yet; the bytes are released at zero. */
  #open = 2
  #closers: (() => void)[] | null = null

  constructor(from: {
    readonly id: string
    readonly wire: WireRequest
    readonly sink: Sink
    readonly abort: CallAbort
    readonly snapshot: Snapshot
    readonly clock: Clock
    readonly log: RunnerLog
    readonly authenticated?: Identity
    readonly endsAtDrain?: boolean
  }) {
    this.id = from.id
    this.wire = from.wire
    this.snapshot = from.snapshot
    this.receivedAt = from.clock.now()
    this.startedAt = from.clock.monotonic()
    this.sink = from.sink
    this.abort = from.abort
    this.authenticated = from.authenticated ?? null
    this.endsAtDrain = from.endsAtDrain ?? false
    this.#log = from.log
  }

  get signal(): CallSignal {
    return this.abort
  }

  /** Counts the bytes that the call retains from now on towards its agent. */
  retainIn(pool: SharedPool | null, identity: Identity): void {
    if (pool === null) return
    this.#pool = pool
    this.#agent = callingAgentOf(identity)
  }

  retain(bytes: number): boolean {
    if (this.#pool === null) return true
    if (this.#open === 0 || this.#pool.acquire(this.#agent, bytes) !== null) return false
    this.#retained += bytes
    return true
  }

  whenOver(close: () => void): void {
    if (this.#open <= 0) close()
    else if (this.#closers === null) this.#closers = [close]
    else this.#closers.push(close)
  }

  /** Call once when the call has ended, and once when its response was sent or its connection closed. */
  release(): void {
    this.#open--
    if (this.#open > 0) return
    for (const close of this.#closers ?? []) close()
    if (this.#retained === 0) return
    this.#pool?.release(this.#agent, this.#retained)
    this.#retained = 0
  }

  /** Returns the milliseconds that the gateway itself took so far, rounded to microseconds; `elsewhereMs` is subtracted. */
  overheadMs(monotonic: number, elsewhereMs: number): number {
    return Math.max(0, Math.round((monotonic - this.startedAt - elsewhereMs) * 1000) / 1000)
  }

  /** Logs an unexpected error and returns a denial without its details. */
  internalError(what: string, error: unknown): Denial {
    this.#log.error({ call: this.id, error: reasonOf(error) }, `${what} failed`)
    return deny('internal', `${what} failed`)
  }
}

/** Usage and cost that the reviews counted. */
export type Tally = Pick<Outcome, 'usage' | 'usageSource' | 'costMicros' | 'media' | 'batch'>
export const nothingUsed: Tally = { usage: null, usageSource: 'none', costMicros: 0 }

/** The facts of a call. All fields are set in the constructor, so that V8 gives all objects one hidden class. */
class KnownFacts implements Facts {
  identity: Facts['identity']
  target: Facts['target']
  pin: Facts['pin']
  taints: Facts['taints']
  decision: Facts['decision']
  redacted: Facts['redacted']
  approval: Facts['approval']
  hold: Facts['hold']

  constructor(identity: Identity, initial: Omit<Facts, 'identity'>) {
    this.identity = identity
    this.target = initial.target
    this.pin = initial.pin
    this.taints = initial.taints
    this.decision = initial.decision
    this.redacted = initial.redacted
    this.approval = initial.approval
    this.hold = initial.hold
  }
}

/** State of one call. Only the runner writes to it; stages, reviews and planes get it as a readonly `Call`. */
export class GovernedCall implements Call<Fact>, LiveCall {
  readonly id: string
  readonly wire: WireRequest
  readonly receivedAt: number
  readonly operation: Parsed['operation']
  readonly method: string
  readonly server: string
  readonly name: string | null
  readonly parent: string | null
  readonly parentOperation: Parsed['operation'] | null
  readonly identity: Identity
  readonly request: GatewayRequest
  readonly sink: Sink
  readonly abort: CallAbort
  readonly plan: Plan
  /** The body as received: the record has its hash, and a second pass starts with it. */
  readonly received: Body | null
  body: Body | null
  snapshot: Snapshot
  pass: 1 | 2
  facts: Facts
  admitted: number
  /** A stage that admitted after the call was aborted: it may hold a reservation, so it is settled as well. */
  late: Runnable | null
  /** An intent was sent to the ledger, so an outcome must follow. */
  intended: boolean
  /** The intent in the ledger, which the outcome closes; absent before it is written. */
  intent: OpenIntent | undefined
  /** The upstream may have seen the call. */
  forwarded: boolean
  /** Fields that all records of this pass share; null until the first record. */
  described: CommonFields | null
  /** Set once, when the call ends, which ensures that there is only one outcome. */
  outcome: Outcome | null
  /** HTTP status of the upstream's response. */
  status: number
  tally: Tally
  /** Hits of data-loss prevention in this pass; null: none. */
  dlp: DlpTally | null
  markings: readonly Marking[]
  attempts: Outcome['attempts']
  frames: number
  bytesUp: number
  bytesDown: number
  upstreamMs: number
  /** Time spent waiting for an approval, which does not count as overhead. */
  waitedMs: number
  /** Monotonic milliseconds at which the current wait times out. Not the wall clock, which may be changed. */
  deadlineAt: number
  deadlineCode: ErrorCode
  deadlineReason: string
  /** Index among the live calls; maintained by the `SwapRemoveSet`. */
  place: number
  /** Set by the runner before it adds the call to the live calls. */
  endsWork: boolean

  constructor(request: GatewayRequest, identity: Identity, parsed: Parsed, plan: Plan) {
    this.id = request.id
    this.wire = request.wire
    this.receivedAt = request.receivedAt
    this.operation = parsed.operation
    this.method = parsed.method
    this.server = parsed.server
    this.name = parsed.name
    this.parent = parsed.parent
    this.parentOperation = parsed.parentOperation ?? null
    this.identity = identity
    this.request = request
    this.sink = request.sink
    this.abort = request.abort
    this.plan = plan
    this.received = parsed.body
    this.body = parsed.body
    this.snapshot = request.snapshot
    this.pass = 1
    this.facts = new KnownFacts(identity, plan.initial)
    this.admitted = 0
    this.late = null
    this.intended = false
    this.intent = undefined
    this.forwarded = false
    this.described = null
    this.outcome = null
    this.status = 0
    this.tally = nothingUsed
    this.dlp = null
    this.markings = NO_MARKINGS
    this.attempts = NO_ATTEMPTS
    this.frames = 0
    this.bytesUp = 0
    this.bytesDown = 0
    this.upstreamMs = 0
    this.waitedMs = 0
    this.deadlineAt = NEVER
    this.deadlineCode = 'internal'
    this.deadlineReason = ''
    this.place = NOWHERE
    this.endsWork = false
  }

  get signal(): CallSignal {
    return this.abort
  }

  retain(bytes: number): boolean {
    return this.request.retain(bytes)
  }

  countHit(detector: string, direction: DlpDirection, action: DlpAction): void {
    this.dlp ??= new DlpTally()
    this.dlp.count(detector, direction, action)
  }

  get long(): boolean {
    return this.plan.row.long
  }

  get endsAtDrain(): boolean {
    return this.request.endsAtDrain
  }

  stop(reason: AbortReason, denial: Denial | null): void {
    this.abort.stop(reason, denial)
  }

  check(now: number, monotonic: number): void {
    if (this.abort.reason !== null || this.outcome !== null) return
    if (monotonic >= this.deadlineAt) this.stop('deadline', deny(this.deadlineCode, this.deadlineReason))
    const denial = this.recheck(now)
    if (denial !== null) this.stop('revoked', denial)
  }

  /** Returns a denial when the token has expired, or a stage that admitted the call would no longer do so. */
  recheck(now: number): Denial | null {
    if (now >= this.identity.expiresAt) return deny('unauthenticated', 'the session token has expired')
    const stages = this.plan.stages
    for (let place = 0; place < this.admitted; place++) {
      const stage = stages[place]
      if (stage?.still === undefined) continue
      try {
        const denial = stage.still(this)
        if (denial !== null) return denial
      } catch (error) {
        return this.request.internalError(`the step ${stage.name}`, error)
      }
    }
    return null
  }

  /** Returns the milliseconds that the gateway itself took so far, without the time of the upstream and of approvers. */
  overheadMs(monotonic: number): number {
    return this.request.overheadMs(monotonic, this.upstreamMs + this.waitedMs)
  }

  /** Waits for `work` until the call is aborted or the deadline passes. The shared timer of the live calls checks the deadline. */
  async within<T>(work: PromiseLike<T>, by: Deadline, late?: (value: T) => void) {
    this.deadlineAt = by.monotonic + by.ms
    this.deadlineCode = by.code
    this.deadlineReason = by.reason
    try {
      return await this.abort.until(work, late)
    } finally {
      this.deadlineAt = NEVER
    }
  }

  /** Resets the call for a second pass on `snapshot`, after an approval was granted: facts of the first pass are discarded. */
  rewind(snapshot: Snapshot): void {
    this.pass = 2
    this.snapshot = snapshot
    this.body = this.received
    this.facts = new KnownFacts(this.identity, this.plan.initial)
    this.admitted = 0
    this.described = null
    this.dlp = null
  }
}

const NO_ATTEMPTS: Outcome['attempts'] = []
const NO_MARKINGS: readonly Marking[] = []

/** A time limit, and the refusal when it passes. */
export interface Deadline {
  /** Monotonic milliseconds from which `ms` count. */
  readonly monotonic: number
  readonly ms: number
  readonly code: ErrorCode
  readonly reason: string
}
