import type { Denial } from '../../../call/index.ts'
import { secondsOf } from '../../wire/refusal-text.ts'

/** Returns the members of an error object that programs read, by the names of MCP's `plat.dev/denial` in the case of these APIs. */
export function denialFacts({ code, policy, rule, retryAfterMs, data }: Denial, decisionId: string | null) {
  const approvalId = data?.approvalId
  return {
    code,
    ...(policy !== null && { policy }),
    ...(rule !== null && { rule }),
    ...(retryAfterMs !== null && { retry_after_seconds: secondsOf(retryAfterMs) }),
    ...(typeof approvalId === 'string' && { approval_id: approvalId }),
    ...(decisionId !== null && { decision_id: decisionId }),
  }
}
