import { withoutKeys } from './plan/plan.ts'
import type { Finding, TierResult } from './plan/tiers.ts'

/** Maximum number of changes in a response. */
const MAX_FINDINGS = 200
/** Maximum number of changes in a preview: more would be cut by its size limit. */
const MAX_PREVIEWED = 100
/** Maximum number of types in the reason of an approval. */
const MAX_NAMED = 5

/** The evaluation of a plan, for the caller. */
export function planResponse({ tier, resources, findings, causes }: TierResult): object {
  const left = findings.length - MAX_FINDINGS
  return {
    tier,
    resources,
    causes,
    findings: findings.slice(0, MAX_FINDINGS),
    ...(left > 0 && { findingsLeftOut: left }),
  }
}

/** Reason for an approval, in one sentence without names of resources. */
export function reasonOf({ tier, resources, findings, causes }: TierResult): string {
  const worst = findings.filter((finding) => finding.tier === tier)
  const types = [...new Set(worst.map(({ type }) => type))].filter((type) => PLAIN.test(type))
  const named = types.length === 0 ? '' : `, the most of it by ${types.slice(0, MAX_NAMED).join(', ')}`
  const more = types.length > MAX_NAMED ? ' and others' : ''
  const whole = causes.length === 0 ? '' : `; ${causes.join('; ')}`
  return `a plan of tier ${tier} that changes ${resources} resources${named}${more}${whole}`
}

/** Form of type names; no other text is repeated in a record. */
const PLAIN = /^[a-z][a-z0-9_]{0,63}$/

/** Preview of a plan for approvers: changes by address, without instance keys, which can be names of people. */
export function previewOf(judgement: TierResult): string {
  const { findings } = judgement
  const lines = findings.slice(0, MAX_PREVIEWED).map(lineOf)
  const left = findings.length - lines.length
  return [reasonOf(judgement), ...lines, ...(left > 0 ? [`and ${left} more`] : [])].join('\n')
}

function lineOf({ address, tier, actions, causes }: Finding): string {
  const plain = withoutKeys(address)
  return `tier ${tier}: ${actions.join(' and ')} ${plain}${plain === address ? '' : '[…]'} (${causes.join(', ')})`
}
