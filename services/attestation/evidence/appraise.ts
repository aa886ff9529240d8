import { isDeepStrictEqual } from 'node:util'
import { CodedRefusalError } from '@plat/http/endpoints'
import type { Release, Result } from '../release/release.ts'

/**
 * Compares the facts established by the broker with the requirements of the release (RFC 9334, appraisal of attestation results). Throws a refusal.
 */
export function appraise({ digests, isolation }: Release, result: Result): void {
  const { digest = null, isolation: isolated = null } = result
  if (digests.length > 0 && (digest === null || !digests.includes(digest))) {
    throw refused('the launched measurement is not one that the release requires')
  }
  if (isolation !== null && isolated !== isolation) {
    throw refused(`the evidence does not show isolation ${isolation}`)
  }
}

/**
 * The holder of a token gets another one only on the same platform with the same software: every established member must be equal. Throws a refusal.
 */
export function refuseChange({ holder }: Release, result: Result): void {
  if (holder === null || isDeepStrictEqual(holder.result, result)) return
  const members = new Set([...Object.keys(holder.result), ...Object.keys(result)])
  const changed = [...members].filter((member) => holder.result[member] !== result[member])
  throw new CodedRefusalError(
    403,
    'platform_changed',
    `the evidence differs from that of the redemption: ${changed.join(', ')}`,
  )
}

function refused(message: string): CodedRefusalError {
  return new CodedRefusalError(403, 'measurement_refused', message)
}
