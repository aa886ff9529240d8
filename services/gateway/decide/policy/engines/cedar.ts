import type { Cedar, CedarInput, CedarPolicies, CedarResult } from '@plat/resources/cedar'
import { BudgetExceededError, type CostBudget } from '@plat/resources/expression'
import type { Decision } from '../../../call/index.ts'
import type { PolicyInput } from '../policy-input.ts'
import { cedarInput, cedarQuestionCost } from './input.ts'
import type { Verdict } from './verdict.ts'

export interface CedarText {
  /** Name of the policy. */
  readonly policy: string
  /** Null: it could not be compiled and denies. */
  readonly policies: CedarPolicies | null
  /** Why it could not be compiled; empty if it was. */
  readonly fault: string
}

/** Compiles a text. `cedar` is null if the engine cannot be loaded. */
export function cedarText(policy: string, text: string, cedar: Cedar | null): CedarText {
  const compiled = cedar === null ? 'the Cedar engine cannot be loaded' : cedar.compile(text)
  return typeof compiled === 'string'
    ? { policy, policies: null, fault: compiled }
    : { policy, policies: compiled, fault: '' }
}

/** Combined verdict of an agent's Cedar texts: one that forbids or fails takes precedence over one that permits. */
export interface CedarVerdict extends Verdict, Pick<Decision, 'policy' | 'rule'> {
  readonly action: 'allow' | 'deny'
}

export function judgeCedar(texts: readonly CedarText[], input: PolicyInput, budget: CostBudget): CedarVerdict {
  let question: CedarInput
  try {
    // The engine copies the request for each text.
    budget.spend(texts.length * cedarQuestionCost(input, budget.left))
    question = cedarInput(input)
  } catch (error) {
    if (error instanceof BudgetExceededError) {
      const reason = `the Cedar text of policy ${texts[0]?.policy} exceeded its cost budget: the arguments are too large for it`
      return denied(texts[0], null, reason)
    }
    // The message of a SyntaxError would quote the arguments.
    const why = error instanceof TypeError ? error.message : 'no JSON'
    return denied(texts[0], null, `the arguments cannot be represented in Cedar: ${why}`)
  }
  let permitted: CedarVerdict | null = null
  for (const text of texts) {
    const answer = answerOf(text, input, question)
    if (answer.action === 'deny') return denied(text, answer.policy, refusal(text, answer))
    if (answer.action === 'allow') permitted ??= allowed(text, answer)
  }
  return permitted ?? denied(texts[0], null, `no Cedar policy of ${texts[0]?.policy} permits this`)
}

/** With unknown arguments, as in a list, a policy that reads them hides nothing. */
function answerOf({ policies }: CedarText, { args }: PolicyInput, question: CedarInput): CedarResult {
  const failed: CedarResult = { action: 'deny', policy: null, failed: true }
  if (policies === null) return failed
  try {
    return args === 'unknown' ? policies.decideEntry(question) : policies.decide(question)
  } catch {
    return failed
  }
}

function refusal({ policy }: CedarText, answer: CedarResult): string {
  if (answer.policy === null) return `the Cedar text of policy ${policy} cannot be judged`
  const named = `Cedar policy ${answer.policy} of ${policy}`
  return answer.failed ? `${named} cannot be evaluated, and forbids` : `${named} forbids this`
}

function allowed({ policy }: CedarText, answer: CedarResult): CedarVerdict {
  return { action: 'allow', policy, rule: answer.policy, reason: `Cedar policy ${answer.policy} of ${policy}` }
}

function denied(text: CedarText | undefined, rule: string | null, reason: string): CedarVerdict {
  return { action: 'deny', policy: text?.policy ?? null, rule, reason }
}
