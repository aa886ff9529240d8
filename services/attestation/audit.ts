import { CodedRefusalError, type RefusalError } from '@plat/http/endpoints'
import type { Ledger, Rec } from '@plat/ledger'
import type { Log } from '@plat/process'
import type { Release } from './release/release.ts'

/** Recorded events. */
export type AttestationEvent = 'release' | 'redeem' | 'renew' | 'end'

/** Where events are recorded. */
export interface AuditParts {
  readonly log: Log
  /** Ledger of flag `-audit-path`; null: only the log. */
  readonly ledger: Ledger | null
}

/** Facts about a release beside its session; never evidence or tokens. */
export interface Facts {
  readonly jti?: string
  /** RFC 3339. */
  readonly expiresAt?: string
  readonly reason?: string
  readonly check?: string
  readonly digest?: string
  /** Thumbprint of the workload's key. */
  readonly jkt?: string
}

/** Records an event: with a ledger, nothing is released before its record is durable. Throws 503 when it cannot be. */
export async function recordDone(
  { log, ledger }: AuditParts,
  event: AttestationEvent,
  release: Release,
  facts: Facts = {},
): Promise<void> {
  const { check, digest, jkt, ...more } = facts
  log.info({ event, outcome: 'done', releaseId: release.id, ...release.name, ...facts }, 'done')
  if (ledger === null) return
  try {
    await ledger.append({
      ...record(event, 'allow', release),
      ...more,
      facts: { release: release.id, check, digest, jkt },
    })
  } catch {
    // The ledger logs the reason once, however many records fail.
    throw new CodedRefusalError(503, 'unavailable', 'the audit ledger cannot be written: try again later')
  }
}

/**
 * Records a refusal. The ledger only has those of known sessions: a flood of others must not fill the disk. No refusal waits for its record, and
 * none is withdrawn without one.
 */
export function recordRefused(
  { log, ledger }: AuditParts,
  event: AttestationEvent,
  refusal: RefusalError,
  release: Release | null,
): void {
  const { status, message: reason } = refusal
  const code = codeOf(refusal)
  const who = release === null ? {} : { releaseId: release.id, ...release.name }
  log.warn({ event, outcome: 'refused', status, code, reason, ...who }, 'refused')
  if (ledger === null || release === null) return
  ledger
    .append({ ...record(event, 'deny', release), status, code, reason, facts: { release: release.id } })
    .catch(() => log.warn({ event }, 'a refusal is missing from the audit ledger'))
}

/** Returns the code of a refusal for response and metrics. Refusals of shared code are about the form of a request. */
export function codeOf(refusal: RefusalError): string {
  if (refusal instanceof CodedRefusalError) return refusal.code
  return refusal.status < 500 ? 'invalid_request' : 'unavailable'
}

function record(event: AttestationEvent, action: 'allow' | 'deny', { name, session }: Release): Rec {
  const user = typeof session.user === 'string' ? session.user : undefined
  return { kind: 'decision', op: `attestation.${event}`, action, ...name, user }
}
