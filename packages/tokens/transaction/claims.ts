import { isObject, parseSessionSpiffeId } from '@plat/core'
import { decodeClaims, type SessionClaims } from '../claims.ts'
import { fault, isFault, type TokenFault } from '../fault.ts'
import type { Members } from '../members.ts'

/** `typ` of a transaction token's header (OAuth Transaction Tokens draft). */
export const TRANSACTION_TYPE = 'txntoken+jwt'

/** Maximum length of a `txn` in characters: it is stored. */
const MAX_TXN_CHARS = 256

export interface TransactionClaims {
  /** Unique id of the transaction: the id of the call in the ledger. */
  readonly txn: string
  /** The calling session, as if it had presented a session token: `jti` is that of its token (`tctx.jti`). */
  readonly caller: SessionClaims
}

/**
 * Decodes the payload of a verified transaction token, with the decoder of session tokens, so that `act`, groups and taints have the same meaning
 * and limits. Does not check time, audience and trust domain.
 */
export function decodeTransaction(payload: Members, keyThumbprint = ''): TransactionClaims | TokenFault {
  const { txn, sub, tctx } = payload
  if (typeof txn !== 'string' || txn === '' || txn.length > MAX_TXN_CHARS)
    return fault('malformed', '"txn" is missing or too long')
  if (!isObject(tctx)) return fault('malformed', '"tctx" is missing')
  const name = typeof sub === 'string' ? parseSessionSpiffeId(sub) : null
  if (name === null) return fault('binding', '"sub" is not a session')
  const caller = decodeClaims(
    {
      iss: payload.iss ?? 'transaction token',
      sub,
      aud: payload.aud,
      iat: payload.iat,
      exp: payload.exp,
      jti: tctx.jti,
      act: payload.act,
      scope: payload.scope,
      plat_ns: name.namespace,
      plat_agent: name.agent,
      plat_session: name.session,
      plat_groups: payload.plat_groups,
      plat_principal_verified: payload.plat_principal_verified,
      plat_inherited_taints: payload.plat_inherited_taints,
      plat_delegation_jtis: payload.plat_delegation_jtis,
      plat_lineage: payload.plat_lineage,
    },
    keyThumbprint,
  )
  return isFault(caller) ? caller : { txn, caller }
}
