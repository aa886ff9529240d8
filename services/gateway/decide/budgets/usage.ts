import type { Outcome } from '../../call/index.ts'

/** Whether the usage of a call needs no estimate: the provider reported it, or it used nothing. */
export function isKnown({ usageSource }: Outcome): boolean {
  return usageSource === 'reported' || usageSource === 'cached'
}

/** Whether a call used nothing beyond what is known: the plane refused it, or the upstream rejected the gateway's key. */
export function isRefused({ result, code }: Outcome): boolean {
  return result === 'denied' || code === 'upstream_credential'
}
