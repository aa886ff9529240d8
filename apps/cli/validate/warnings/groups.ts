import type { Manifest } from '@plat/resources'
import type { Surroundings } from './surroundings.ts'

/**
 * Groups that gateway.json and other objects name. Groups come from the identity provider, so one that is named once is a misspelling only
 * where it resembles one of these.
 */
export function groupsElsewhere({ declared, config }: Surroundings, object: Manifest): readonly string[] {
  const { roles, namespaceRoles } = config.adminAuth
  const granting = [roles, ...Object.values(namespaceRoles)].flatMap((each) => Object.values(each).flat())
  const policies = declared.policies.filter((policy) => policy !== object)
  const rules = policies.flatMap(({ spec }) => spec.rules ?? [])
  return [
    ...granting.filter((name) => !name.startsWith('user:')),
    ...rules.flatMap(({ match, quorum }) => [...(match?.groups ?? []), ...(quorum?.approverGroups ?? [])]),
    ...declared.budgets.filter((budget) => budget !== object).flatMap(({ spec }) => spec.selector?.groups ?? []),
  ]
}
