import { isPromise } from '@plat/core'
import { type Denial, deny, type Fact, type Facts, isDenial, kindOf } from '../../call/index.ts'
import { admitted, type Replace, type Wait } from '../stage.ts'
import type { GovernedCall } from './call.ts'
import type { Runnable } from './plan.ts'

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
