import type { Expression } from '@plat/resources/expression'
import type { RuleEntry } from '@plat/resources/rendered'
import type { PolicySet } from './compile.ts'
import { holds } from './judge.ts'
import { type PolicyInput, Variables } from './policy-input.ts'
import type { Matcher } from './rules/conditions.ts'

/** A rule that requires an approval. */
export interface ApprovalRule {
  /** `<namespace>/<name>` */
  readonly policy: string | null
  readonly rule: string | null
  /** Quorum of the rule; null: the default. */
  readonly quorum: NonNullable<RuleEntry['quorum']> | null
  /** Null: matches every message. */
  readonly matches: Matcher | null
  readonly when: Expression | null
}

/**
 * Returns every approval rule in force that applies to this message. A decision names only one of them; the quorum merges all, so that
 * the order of rules never matters. Computed only when a call needs an approval.
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
