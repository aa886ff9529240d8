import type { Decision } from '../../../call/index.ts'

export interface Verdict {
  readonly action: Decision['action']
  readonly reason: string
}

const STRICTNESS: Readonly<Record<Decision['action'], number>> = { allow: 1, require_approval: 2, deny: 3 }

export function isStricter(action: Decision['action'], than: Decision['action']): boolean {
  return STRICTNESS[action] > STRICTNESS[than]
}

/** Members of a decision by an engine, in addition to its verdict. */
export type Deciding = Pick<Decision, 'policy' | 'rule' | 'ruleSha256'>

/** Returns the stricter of the decision so far and another verdict; of equals the first. */
export function joined(
  decision: Decision,
  engine: Decision['engines'][number]['name'],
  verdict: Verdict,
  by: Deciding,
): Decision {
  const { action, reason } = verdict
  const engines = [...decision.engines, { action, name: engine }]
  if (!isStricter(action, decision.action)) return { ...decision, engines }
  const { ruleSha256: _, code: __, ...rest } = decision
  return { ...rest, ...by, action, reason, engines, rates: action === 'deny' ? [] : decision.rates }
}
