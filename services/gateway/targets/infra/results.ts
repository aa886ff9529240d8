import { withoutKeys } from './plan/plan.ts'
import type { Finding, TierResult } from './plan/tiers.ts'

/** Changes that are listed in an answer. */
const MAX_TOLD = 200
/** Changes that an approver is shown: more would be cut by the cap of previews anyway. */
const MAX_SHOWN = 100
/** Types that stand in the one sentence of an approval. */
const MAX_NAMED = 5

/** What a caller is told of its plan. */
export function told({ tier, resources, findings, causes }: TierResult): object {
  const left = findings.length - MAX_TOLD
  return { tier, resources, causes, findings: findings.slice(0, MAX_TOLD), ...(left > 0 && { findingsLeftOut: left }) }
}

/** Why a person is asked, in one sentence that holds no name of a resource. */
export function reasonOf({ tier, resources, findings, causes }: TierResult): string {
  const worst = findings.filter((finding) => finding.tier === tier)
  const types = [...new Set(worst.map(({ type }) => type))].filter((type) => PLAIN.test(type))
  const named = types.length === 0 ? '' : `, the most of it by ${types.slice(0, MAX_NAMED).join(', ')}`
  const more = types.length > MAX_NAMED ? ' and others' : ''
  const whole = causes.length === 0 ? '' : `; ${causes.join('; ')}`
  return `a plan of tier ${tier} that changes ${resources} resources${named}${more}${whole}`
}

/** As providers name types: nothing else is repeated in a record. */
const PLAIN = /^[a-z][a-z0-9_]{0,63}$/

/** What approvers see of a plan: what it does to which resource, without the keys of instances, which can be names of people. */
export function shownTo(judgement: TierResult): string {
  const { findings } = judgement
  const lines = findings.slice(0, MAX_SHOWN).map(shown)
  const left = findings.length - lines.length
  return [reasonOf(judgement), ...lines, ...(left > 0 ? [`and ${left} more`] : [])].join('\n')
}

function shown({ address, tier, actions, causes }: Finding): string {
  const plain = withoutKeys(address)
  return `tier ${tier}: ${actions.join(' and ')} ${plain}${plain === address ? '' : '[…]'} (${causes.join(', ')})`
}
