import { OAuthError, type RefusalError } from '@plat/http/endpoints'
import type { Ledger, Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { RefusalShares } from './refusals.ts'
import { nameIn } from './session-name.ts'

export type IssuanceEvent = 'mint' | 'bind' | 'exchange' | 'delegation' | 'bootstrap'

/** Where issuance is recorded. */
export interface AuditParts {
  readonly log: Log
  /** The ledger of flag `-audit-path`; the log alone when absent. */
  readonly ledger?: Ledger | null
  /** Bounds the refusals of one caller in the ledger; absent: each is recorded. */
  readonly refusals?: RefusalShares | null
}

/** Record of an issued token; never contains the token. */
export interface IssuedFacts {
  /** Absent when a session was given without a token. */
  readonly jti?: string
  /** SPIFFE ID. */
  readonly sub: string
  readonly user: string | null
  readonly scope: string
  /** RFC 3339; absent when nothing ends it. */
  readonly expiresAt?: string
  /** The `jti` of the token that it was made from. */
  readonly parent?: string
  /** SPIFFE IDs of the delegating agents, nearest first. */
  readonly chain?: readonly string[]
  readonly audience?: string
  readonly provider?: string
}

/** The caller, as far as it is verified: SPIFFE ID and `jti` of the token, or the pod. */
export interface Asker {
  sub?: string
  jti?: string
}

/**
 * Issuance is audited: one line per token and per refusal. With a ledger nothing is handed out before its record is durable; when it
 * cannot be, the answer is 503.
 */
export function recordIssued(
  { log, ledger = null }: AuditParts,
  event: IssuanceEvent,
  facts: IssuedFacts,
): undefined | Promise<void> {
  log.info({ event, outcome: 'issued', ...facts }, 'issued')
  return ledger === null ? undefined : durable(ledger, issuedRecord(event, facts))
}

async function durable(ledger: Ledger, record: Rec): Promise<void> {
  try {
    await ledger.append(record)
  } catch {
    // The ledger logs the reason once, however many records fail.
    throw new OAuthError(503, 'temporarily_unavailable', 'the audit ledger cannot be written: try again later')
  }
}

/**
 * The ledger records refusals of known callers; those of unknown ones are only logged, since a flood of them must not fill the disk. No refusal
 * waits for its record, and none is withdrawn without one.
 */
export function recordRefused(
  { log, ledger = null, refusals = null }: AuditParts,
  event: IssuanceEvent,
  refusal: RefusalError,
  who: Asker = {},
): void {
  const { status, message: reason } = refusal
  const code = refusal instanceof OAuthError ? { code: refusal.code } : {}
  log.warn({ event, outcome: 'refused', status, ...code, reason, ...who }, 'refused')
  const known = event === 'mint' || Object.keys(who).length > 0
  if (ledger === null || !known) return
  const { sub, jti } = who
  if (refusals?.admit(sub ?? jti ?? opOf(event)) === false) return
  ledger
    .append({ kind: 'decision', op: opOf(event), action: 'deny', status, ...code, reason, jti, ...nameIn(sub) })
    .catch(() => {
      log.warn({ event }, 'a refusal is missing from the audit ledger')
    })
}

function issuedRecord(event: IssuanceEvent, facts: IssuedFacts): Rec {
  const { sub, jti, user, scope, chain = [], ...more } = facts
  return {
    kind: 'decision',
    op: opOf(event),
    action: 'allow',
    jti,
    user: user ?? undefined,
    ...nameIn(sub),
    ...more,
    facts: { scopes: scope === '' ? undefined : scope.split(' '), chain: chain.length === 0 ? undefined : chain },
  }
}

/** `identity.mint`, …: the broker's operations in a ledger. */
function opOf(event: IssuanceEvent): string {
  return `identity.${event}`
}
