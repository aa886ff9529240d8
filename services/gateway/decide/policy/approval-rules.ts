import type { Expression } from '@plat/resources/expression'
import type { RuleEntry } from '@plat/resources/rendered'
import type { PolicySet } from './compile.ts'
import { holds } from './judge.ts'
import { type PolicyInput, Variables } from './policy-input.ts'
import type { Matcher } from './rules/conditions.ts'

/** A rule that asks for an approval. */
export interface ApprovalRule {
  /** `<namespace>/<name>` */
  readonly policy: string | null
  readonly rule: string | null
  /** Who must approve, as the rule says; null: it does not say. */
  readonly quorum: NonNullable<RuleEntry['quorum']> | null
  /** Null: every message. */
  readonly matches: Matcher | null
  readonly when: Expression | null
}

/**
 * Every rule in force that asks for an approval of this message. A decision names one of them; who must approve is for all of them to
 * say, so that the order of rules never matters. Asked only when a call is to be held.
 */
export function askingRules(set: PolicySet, input: PolicyInput): readonly ApprovalRule[] {
  const { namespace, agent } = input.identity
  const variables = new Variables(input)
  const policies = set.byAgent.get(namespace)?.get(agent)?.rules ?? []
  return policies
    .flatMap(({ asking }) => asking)
    .filter(
      ({ matches, when }) =>
        (matches === null || matches(input)) &&
        (when === null || holds('require_approval', when, input, variables) !== false),
    )
}
