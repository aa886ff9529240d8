import { type Clock, isPromise } from '@plat/core'
import { type Denial, deny, type Fact, type Facts, isDenial, kindOf, type Outcome } from '../../call/index.ts'
import { admitted, type Replace, type Wait } from '../stage.ts'
import { type GovernedCall, nothingUsed } from './call.ts'
import { aborted, CallAbort } from './call-abort.ts'
import type { Runnable } from './plan.ts'

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

/** Settles the stages that admitted a call, and the reviews that mark its session. */
export class Settlement {
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Notifies the reviews that mark the session that the whole response was written. Returns a promise only if one of them does. */
  marked(call: GovernedCall): undefined | Promise<void> {
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
  late(call: GovernedCall, stage: Runnable, verdict: unknown): void {
    if (applyVerdict(call, stage, verdict) !== null) return
    if (call.outcome === null) call.late = stage
    else void this.#settleOne(call, stage, call.outcome)
  }
}

/** Facts that may be null. */
const nullable: ReadonlySet<Fact> = new Set<Fact>(['pin', 'redacted', 'approval', 'hold'])

/**
 * Applies the verdict of a stage. Returns null when the stage admitted the call, after adding its facts. An invalid verdict
 * (a forgotten return, a missing fact, another type) is a denial, so that it never permits a call.
 */
export function applyVerdict(call: GovernedCall, stage: Runnable, verdict: unknown): Denial | Wait | null {
  const { gives } = stage
  if (verdict === admitted) return gives.length === 0 ? null : noVerdict(stage)
  if (typeof verdict !== 'object' || verdict === null) return noVerdict(stage)
  if (kindOf(verdict) !== undefined) {
    if (isDenial(verdict) || isWait(verdict)) return verdict
    if (isReplace(verdict)) {
      if (!hasFacts(verdict.facts, gives)) return noVerdict(stage)
      give(call.facts, gives, verdict.facts)
      call.body = verdict.body
      return null
    }
  }
  if (gives.length === 0 || !hasFacts(verdict, gives)) return noVerdict(stage)
  give(call.facts, gives, verdict)
  return null
}

function noVerdict(stage: Runnable): Denial {
  return deny('internal', `the step ${stage.name} gave no verdict`)
}

function isWait(value: object): value is Wait {
  return (
    'kind' in value &&
    value.kind === 'wait' &&
    'until' in value &&
    isPromise(value.until) &&
    'approvalId' in value &&
    typeof value.approvalId === 'string'
  )
}

function isReplace(value: object): value is Replace<never> {
  return (
    'kind' in value &&
    value.kind === 'replace' &&
    'body' in value &&
    typeof value.body === 'object' &&
    value.body !== null &&
    'facts' in value &&
    typeof value.facts === 'object' &&
    value.facts !== null
  )
}

/** Returns true if all facts are present that the stage declares in `gives`. The compiler checks their types. */
function hasFacts(value: Partial<Facts>, gives: readonly Fact[]): value is Facts {
  for (const fact of gives) {
    const given = value[fact]
    if (typeof given !== 'object' || (given === null && !nullable.has(fact))) return false
  }
  return true
}

function give(facts: Facts, gives: readonly Fact[], given: Readonly<Facts>): void {
  for (const fact of gives) copy(facts, fact, given)
}

function copy<F extends Fact>(to: Facts, fact: F, from: Readonly<Pick<Facts, F>>): void {
  to[fact] = from[fact]
}
