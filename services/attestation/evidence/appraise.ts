import { isDeepStrictEqual } from 'node:util'
import { CodedRefusalError } from '@plat/http/endpoints'
import type { Release, Result } from '../release/release.ts'

/** Holds what the broker established against what the release asks for (RFC 9334, appraisal of attestation results). Throws. */
export function appraise({ digests, isolation }: Release, result: Result): void {
  const { digest = null, isolation: isolated = null } = result
  if (digests.length > 0 && (digest === null || !digests.includes(digest))) {
    throw refused('what was launched is not what the release asks for')
  }
  if (isolation !== null && isolated !== isolation) {
    throw refused(`the evidence does not show isolation ${isolation}`)
  }
}

/** Who holds a token gets another one on the same platform alone, running the same: what was established is so again, member by member. Throws. */
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
