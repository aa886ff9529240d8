import type { PolicySet } from './compile.ts'
import type { ApprovalRule } from './compiled-policy.ts'
import { holds } from './judge.ts'
import { type PolicyInput, Variables } from './policy-input.ts'

/**
 * Returns every approval rule in force that applies to this message. A decision names only one of them; the quorum merges all, so that
 * the order of rules never matters. Computed only when a call needs an approval.
 */
export function rulesWithApproval(set: PolicySet, input: PolicyInput): readonly ApprovalRule[] {
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
