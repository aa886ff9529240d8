import { mapInSlices } from '@plat/core'
import { BudgetExceededError } from '@plat/resources/expression'
import type { HoldItem } from '@plat/state'
import type { Decision, Identity } from '../../call/index.ts'
import { type PolicySet, undecided } from './compile.ts'
import type { CompiledPolicy, CompiledRule } from './compiled-policy.ts'
import { judgeCedar } from './engines/cedar.ts'
import { joined } from './engines/verdict.ts'
import type { Governance } from './governance.ts'
import {
  asksForUnknown,
  type ListedTool,
  type Listing,
  type PolicyInput,
  policyInputOfTool,
  Variables,
} from './policy-input.ts'

/**
 * Decides one message by rules and Cedar texts: deny over require_approval over allow over the default. An agent without a policy is
 * denied.
 */
export function judge(set: PolicySet, input: PolicyInput): Decision {
  const { namespace, agent } = input.identity
  const governance = set.byAgent.get(namespace)?.get(agent)
  if (governance === undefined) return withoutPolicy(set, input.identity)
  const variables = new Variables(input)
  return governance.isPlain ? judgeRules(governance.rules, input, variables) : judgeAll(governance, input, variables)
}

/** The enforced verdict, with the verdicts of policies in `dryRun`. */
function judgeAll(governance: Governance, input: PolicyInput, variables: Variables): Decision {
  const decision = enforced(governance, input, variables)
  if (governance.reported.length === 0) return decision
  const wouldBe = governance.reported.map(({ policy, governance: alone }) => ({
    action: enforced(alone, input, variables).action,
    policy,
  }))
  return { ...decision, wouldBe }
}

/** The strictest of rules and Cedar texts. An agent whose policies are all in `dryRun` is observed but not restricted. */
function enforced(
  { rules, cedars, reported, revision }: Governance,
  input: PolicyInput,
  variables: Variables,
): Decision {
  const native = rules.length === 0 ? null : judgeRules(rules, input, variables)
  if (cedars.length > 0) {
    const verdict = judgeCedar(cedars, input, variables.budget)
    const { action, policy, rule, reason } = verdict
    if (native !== null) return joined(native, 'cedar', verdict, { policy, rule })
    return { ...undecided(revision), action, policy, rule, reason, engines: [{ action, name: 'cedar' }] }
  }
  if (native !== null) return native
  const policy = reported[0]?.policy ?? null
  return { ...undecided(revision), action: 'allow', policy, reason: `policy ${policy} is in dryRun` }
}

/**
 * Of rules with the same action the first is named; the verdict is the same. The decision names the rate limits of all matching rules,
 * so those rules are evaluated even if they cannot change the verdict.
 */
function judgeRules(policies: readonly CompiledPolicy[], input: PolicyInput, variables: Variables): Decision {
  let strictest: CompiledRule | null = null
  let rates: HoldItem[] | null = null
  for (const policy of policies) {
    for (const rule of policy.rules.candidates(input)) {
      const decides = strictest === null || rule.strictness > strictest.strictness
      if (!decides && rule.rate === null) continue
      if (rule.matches !== null && !rule.matches(input)) continue
      if (rule.when !== null) {
        const isMatch = holds(rule.action, rule.when, input, variables)
        if (isMatch === 'budget') return tooCostly(rule.decision)
        if (!isMatch) continue
      }
      if (rule.action === 'deny') return denied(rule.decision, rule.when === null ? null : variables.missing)
      if (rule.rate !== null) {
        rates ??= []
        rates.push(...rule.rate(input))
      }
      if (decides) strictest = rule
    }
  }
  if (strictest === null) return denied(policies[0]?.byDefault ?? undecided(''), variables.firstMissing)
  return rates === null ? strictest.decision : { ...strictest.decision, rates }
}

/**
 * Names the argument without which an expression could not be evaluated, so that the caller can send it: of the rule that denies, or of any
 * rule that could have allowed the call.
 */
function denied(decision: Decision, missing: string | null): Decision {
  if (missing === null || decision.action !== 'deny') return decision
  return { ...decision, reason: `argument "${missing}" is missing (${decision.reason})` }
}

/** Whether a tool is shown in a list. Hidden if a call would be denied with any arguments. */
export function judgeTool(set: PolicySet, listed: ListedTool & { readonly now: number }, tool: string): boolean {
  return judge(set, policyInputOfTool(listed, tool, listed.now)).action !== 'deny'
}

/** `judgeTool` for each tool of a list, in slices: a list may have 100,000. */
export function judgeTools(
  set: PolicySet,
  { sinksOf, ...listing }: Listing & { readonly now: number },
  tools: readonly string[],
): Promise<readonly boolean[]> {
  return mapInSlices(tools, (tool) => judgeTool(set, { ...listing, sinks: sinksOf(tool) }, tool))
}

/** After an error an allow does not match and all stricter rules match. `budget`: the call is denied by any rule. */
export function holds(
  action: CompiledRule['action'],
  when: NonNullable<CompiledRule['when']>,
  input: PolicyInput,
  variables: Variables,
): boolean | 'budget' {
  if (asksForUnknown(input, when.mentions)) return action !== 'deny'
  variables.missing = null
  try {
    const truth = when.test(variables.bind(when.mentions), variables.budget, variables)
    return truth === 'error' ? action !== 'allow' : truth
  } catch (error) {
    return error instanceof BudgetExceededError ? 'budget' : action !== 'allow'
  }
}

function tooCostly(decision: Decision): Decision {
  const { policy, rule } = decision
  const reason = `the "when" of rule ${rule} of policy ${policy} exceeded its cost budget: the arguments are too large for it`
  return { ...decision, action: 'deny', reason, engines: [{ name: 'native', action: 'deny' }] }
}

function withoutPolicy(set: PolicySet, { namespace, agent }: Identity): Decision {
  const reason = `no policy governs agent ${namespace}/${agent}: its policyRef is missing or names no ToolPolicy`
  return { ...undecided(set.revision), reason, engines: [{ name: 'native', action: 'deny' }] }
}
