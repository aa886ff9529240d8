import type { Call } from '../../call/index.ts'

/** Whether neither policy nor a changed definition nor the server requires an approval. */
export function isFree({ facts: { decision, pin, target } }: DecidedCall): boolean {
  return decision.action === 'allow' && pin?.approve !== true && !target.requirements?.approval
}

/** Whether a rule of a policy requires the approval, and nothing else does. */
export function isRequiredByPolicy({ facts: { decision, pin, target } }: DecidedCall): boolean {
  return decision.action === 'require_approval' && pin?.approve !== true && !target.requirements?.approval
}

export type DecidedCall = Call<'identity' | 'target' | 'pin' | 'taints' | 'decision' | 'redacted'>
