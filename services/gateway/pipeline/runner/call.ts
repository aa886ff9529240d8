import { type Clock, NOWHERE, reasonOf, type SharedPool } from '@plat/core'
import {
  type AbortReason,
  agentOf,
  type Body,
  type Call,
  type CallSignal,
  type Denial,
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
import type { Sink } from './exchange.ts'
import type { Plan, Runnable } from './plan.ts'
import type { CommonFields } from './record.ts'

/** No deadline is set. */
const NEVER = Number.POSITIVE_INFINITY

/** One request at the door, with the way back to its caller. */
export class GatewayRequest implements RequestContext {
  readonly id: string
  readonly wire: WireRequest
  readonly snapshot: Snapshot
  readonly receivedAt: number
  /** Monotonic milliseconds. */
  readonly startedAt: number
  readonly sink: Sink
  readonly abort: CallAbort
  readonly #log: RunnerLog
  /** Where the bytes that it retains are counted; null: nowhere. */
  #pool: SharedPool | null = null
  #agent = ''
  #retained = 0
  /** What must end before the bytes are free: the call, and its response. */
  #open = 2

  constructor(from: {
    readonly id: string
    readonly wire: WireRequest
    readonly sink: Sink
    readonly abort: CallAbort
    readonly snapshot: Snapshot
    readonly clock: Clock
    readonly log: RunnerLog
  }) {
    this.id = from.id
    this.wire = from.wire
    this.snapshot = from.snapshot
    this.receivedAt = from.clock.now()
    this.startedAt = from.clock.monotonic()
    this.sink = from.sink
    this.abort = from.abort
    this.#log = from.log
  }

  get signal(): CallSignal {
    return this.abort
  }

  /** From now on the bytes that the call retains are those of its agent. */
  retainIn(pool: SharedPool | null, identity: Identity): void {
    if (pool === null) return
    this.#pool = pool
    this.#agent = agentOf(identity)
  }

  retain(bytes: number): boolean {
    if (this.#pool === null) return true
    if (this.#open === 0 || this.#pool.acquire(this.#agent, bytes) !== null) return false
    this.#retained += bytes
    return true
  }

  /** Called once when the call is over, and once when its response was sent or can no longer be. */
  release(): void {
    this.#open--
    if (this.#open > 0 || this.#retained === 0) return
    this.#pool?.release(this.#agent, this.#retained)
    this.#retained = 0
  }

  /** Milliseconds that the gateway itself took so far, with three decimals, without the time spent `elsewhereMs`. */
  overheadMs(monotonic: number, elsewhereMs: number): number {
    return Math.max(0, Math.round((monotonic - this.startedAt - elsewhereMs) * 1000) / 1000)
  }

  /** What threw is a bug or broken infrastructure: the log has the error, the caller a refusal without details. */
  internalError(what: string, error: unknown): Denial {
    this.#log.error({ call: this.id, error: reasonOf(error) }, `${what} failed`)
    return deny('internal', `${what} failed`)
  }
}

/** What the reviews counted. */
export type Tally = Pick<Outcome, 'usage' | 'usageSource' | 'costMicros'>
export const nothingUsed: Tally = { usage: null, usageSource: 'none', costMicros: 0 }

/** What is known about a call so far. All fields are set at once, so that every call has one shape. */
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

/** The one object of a call. The runner alone writes to it; stages, reviews and planes get it as a readonly `Call`. */
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
  /** The body as it came: what the record hashes, and what a second pass begins with. */
  readonly received: Body | null
  body: Body | null
  snapshot: Snapshot
  pass: 1 | 2
  facts: Facts
  /** How many stages of the plan have admitted, from the first on. */
  admitted: number
  /** A stage whose verdict came after the call had been stopped: it took something, so it is settled as well. */
  late: Runnable | null
  /** An intent was handed to the ledger, so an outcome must follow. */
  intended: boolean
  /** The upstream may have seen the call. */
  forwarded: boolean
  /** What all records of this pass share, once the first is written. */
  described: CommonFields | null
  /** Set once, when the call is over: the latch behind the one outcome. */
  outcome: Outcome | null
  /** Of the upstream's answer. */
  status: number
  tally: Tally
  markings: readonly Marking[]
  attempts: Outcome['attempts']
  frames: number
  bytesUp: number
  bytesDown: number
  upstreamMs: number
  /** Time that a person took; it is not overhead. */
  waitedMs: number
  /** Monotonic milliseconds by which what the call waits for must have come: a wall clock may be set. */
  deadlineAt: number
  deadlineCode: ErrorCode
  deadlineReason: string
  /** Among the live calls. */
  place: number
  /** Set by the runner before the call is live. */
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
    this.forwarded = false
    this.described = null
    this.outcome = null
    this.status = 0
    this.tally = nothingUsed
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

  get long(): boolean {
    return this.plan.row.long
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

  /** The `fresh` step: is the token still valid, and does what every stage admitted still hold? */
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

  /** Milliseconds that the gateway itself took so far: neither the upstream's time nor a person's. */
  overheadMs(monotonic: number): number {
    return this.request.overheadMs(monotonic, this.upstreamMs + this.waitedMs)
  }

  /** Waits for `work` until the call is stopped or `ms` are over; the shared timer asks, so a wait costs no timer of its own. */
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

  /** Back to the first stage on the current snapshot: a wait was granted. What was learnt in the first pass is forgotten. */
  rewind(snapshot: Snapshot): void {
    this.pass = 2
    this.snapshot = snapshot
    this.body = this.received
    this.facts = new KnownFacts(this.identity, this.plan.initial)
    this.admitted = 0
    this.described = null
  }
}

const NO_ATTEMPTS: Outcome['attempts'] = []
const NO_MARKINGS: readonly Marking[] = []

/** By when something must have happened, and what it means when it has not. */
export interface Deadline {
  /** Monotonic milliseconds from which `ms` count. */
  readonly monotonic: number
  readonly ms: number
  readonly code: ErrorCode
  readonly reason: string
}
