import type { Rec } from '@plat/ledger'
import type { Revocation } from './format.ts'
import { keyOf } from './list.ts'
import type { Added } from './stored-revocations.ts'

// Members of `revocation` records (ledger line format) are absent rather than null. The target uses the members that every record has for
// a caller, so that a search for a session also finds its revocations.

/** Record of a new revocation. `cut`: number of calls it ended; `kept` is false if the journal failed. */
export function revokeRecord(revocation: Revocation, by: string, { cut, fault }: Added): Rec {
  return { ...about(revocation, by), action: revocation.mode, cut, kept: fault === null }
}

export function liftRecord(revocation: Revocation, by: string): Rec {
  return { ...about(revocation, by), action: 'lift' }
}

export function fileRecord(change: {
  readonly action: 'loaded' | 'unavailable'
  readonly entries?: number
  readonly sha256?: string
  readonly reason?: string
  readonly cut: number
}): Rec {
  return { kind: 'revocation', source: 'file', ...change }
}

function about(revocation: Revocation, by: string): Rec {
  const { id, target, reason, createdAt, expiresAt } = revocation
  const { scope, key } = keyOf(target)
  return {
    kind: 'revocation',
    source: 'breakglass',
    revocation: id,
    scope,
    target: key === '' ? undefined : key,
    ...named(revocation),
    reason: reason === '' ? undefined : reason,
    createdAt,
    expiresAt: expiresAt ?? undefined,
    by,
  }
}

function named({ target }: Revocation) {
  const [namespace, agent, session] = (target.session ?? target.agent ?? target.namespace ?? '').split('/')
  return { namespace: namespace || undefined, agent, session, user: target.user, jti: target.jti }
}
