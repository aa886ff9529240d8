import { AdminError } from './error.ts'
import type { Principal } from './roles.ts'

/** Actions that may require a fresh or stronger login (`adminAuth.stepUp`). */
export const STEP_UP_ACTIONS = ['approve', 'revoke', 'accept', 'view', 'control'] as const
export type StepUpAction = (typeof STEP_UP_ACTIONS)[number]

/** Requirements of one action; with all of them empty or 0 there is none. */
export interface StepUpRule {
  /** Accepted values of `acr`. */
  readonly acr: readonly string[]
  /** `amr` must contain one of these. */
  readonly amr: readonly string[]
  readonly maxAgeSeconds: number
}

export type StepUp = Readonly<Record<StepUpAction, StepUpRule>>

/** Clocks of the gateway and the identity provider may differ by this, in seconds. */
const SKEW_SECONDS = 5

/** Returns true if the action requires anything. */
export function isRequired({ acr, amr, maxAgeSeconds }: StepUpRule): boolean {
  return acr.length > 0 || amr.length > 0 || maxAgeSeconds > 0
}

/**
 * Throws `step_up_required` with `acr` and `maxAge` for the next login (RFC 9470) unless the login of the caller satisfies the rule. The static
 * token is exempt: it is the way in when the identity provider is down.
 */
export function demandStepUp(rule: StepUpRule, { auth, byToken }: Principal, nowMs: number): void {
  if (byToken || !isRequired(rule)) return
  const { acr, amr, maxAgeSeconds } = rule
  const age = auth?.at == null ? Number.POSITIVE_INFINITY : nowMs / 1000 - auth.at
  const isStrong = acr.length === 0 || (auth?.acr != null && acr.includes(auth.acr))
  const isBy = amr.length === 0 || amr.some((method) => auth?.amr.includes(method) === true)
  const isFresh = maxAgeSeconds === 0 || (age <= maxAgeSeconds + SKEW_SECONDS && age >= -SKEW_SECONDS)
  if (isStrong && isBy && isFresh) return
  throw new AdminError('step_up_required', 'this needs a fresher or stronger login (adminAuth.stepUp): log in again', {
    acr: acr.join(' '),
    // Without an `acr` to request, only a new login can bring other methods.
    maxAge: maxAgeSeconds > 0 ? maxAgeSeconds : isBy || acr.length > 0 ? null : 0,
  })
}
