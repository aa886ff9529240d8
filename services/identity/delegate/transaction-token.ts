import { type Clock, parseSessionSpiffeId, reasonOf } from '@plat/core'
import { createDialer } from '@plat/http'
import type { Log } from '@plat/process'
import {
  decodeClaims,
  isFault,
  isObject,
  type Jws,
  joinSources,
  jwksSource,
  type KeySource,
  parseJws,
  pemSource,
  type SessionClaims,
} from '@plat/tokens'
import type { IdentitySettings } from '../flags.ts'

/** How far the clock of the gateway may be ahead of ours, in seconds. */
const SKEW_SECONDS = 5
/** How often keys behind a URL are asked for, in seconds (document 1, "Limits"). */
const REFRESH_SECONDS = 300
/** Longest `txn`, in characters: it is kept. */
const MAX_TXN_CHARS = 256

/** A transaction token of the gateway: the call that agent A made, as the agent that it called presents it. */
export interface TransactionToken {
  /** Unique id of the transaction. */
  readonly txn: string
  /** The caller, A, as if it had presented a session token: `jti` is that of A's token (`tctx.jti`). */
  readonly caller: SessionClaims
  /** The one scope that it carries: `agents:<B>` or `agents:<ns>/<B>`. */
  readonly scopes: readonly string[]
}

/** Why it does not count. The message is one line for the caller. */
export interface TransactionFault {
  readonly kind: 'fault'
  readonly message: string
}

export interface TransactionVerifier {
  verify(token: string): Promise<TransactionToken | TransactionFault>
  close(): void
}

export interface TransactionVerifierOptions {
  readonly settings: IdentitySettings
  readonly clock: Clock
  readonly log: Log
}

/** Opens the keys of flag `-txn-token-keys`; null without any. Rejects when a file cannot be used. */
export async function openTransactionVerifier(
  options: TransactionVerifierOptions,
): Promise<TransactionVerifier | null> {
  const { settings, clock, log } = options
  const given = settings.txnTokenKeys
  if (given.length === 0) return null
  const dialer = createDialer({ log })
  const isUrl = (text: string) => /^https?:\/\//.test(text)
  const urls = given.filter(isUrl)
  const files = given.filter((text) => !isUrl(text))
  const keys = joinSources([
    ...(files.length > 0 ? [pemSource(files, { clock, log })] : []),
    ...urls.map((url) => jwksSource({ url, refreshSeconds: REFRESH_SECONDS, dialer, clock, log })),
  ])
  const close = () => {
    keys.close()
    void dialer.close()
  }
  try {
    await keys.start()
  } catch (error) {
    close()
    throw new Error(`-txn-token-keys: ${reasonOf(error)}`)
  }
  return { verify: (token) => verify(token, keys, options), close }
}

async function verify(
  token: string,
  keys: KeySource,
  { settings, clock }: TransactionVerifierOptions,
): Promise<TransactionToken | TransactionFault> {
  const jws = parseJws(token)
  if (isFault(jws)) return jws
  if (jws.header.typ !== 'txntoken+jwt') return fault('"typ" is not txntoken+jwt')
  if (jws.header.alg !== 'EdDSA') return fault('its algorithm is not accepted')
  const key = await keyFor(jws, keys)
  if (key === null) return fault('it is signed by no key that is trusted')
  if (!key.algorithm.verify(jws.input, key.key, jws.signature)) return fault('its signature is wrong')
  const audience = settings.txnTokenAudience === '' ? settings.trustDomain : settings.txnTokenAudience
  return decode(jws.payload, { audience, trustDomain: settings.trustDomain, now: clock.now() / 1000 })
}

async function keyFor({ header }: Jws, keys: KeySource) {
  const known = keys.find(header.kid)
  if (known !== null) return known
  await keys.refresh()
  return keys.find(header.kid)
}

interface Expected {
  readonly audience: string
  readonly trustDomain: string
  /** Unix seconds. */
  readonly now: number
}

function decode(
  payload: Jws['payload'],
  { audience, trustDomain, now }: Expected,
): TransactionToken | TransactionFault {
  const { txn, sub, tctx } = payload
  if (typeof txn !== 'string' || txn === '' || txn.length > MAX_TXN_CHARS) return fault('"txn" is missing or too long')
  if (!isObject(tctx)) return fault('"tctx" is missing')
  const name = typeof sub === 'string' ? parseSessionSpiffeId(sub) : null
  if (name === null || name.trustDomain !== trustDomain) return fault('"sub" is no session of the trust domain')
  // Read by the decoder of session tokens, so that `act`, groups and taints mean the same and have the same limits.
  const caller = decodeClaims({
    iss: 'transaction token',
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
  })
  if (isFault(caller)) return caller
  if (!caller.audiences.includes(audience)) return fault('it is for another audience')
  if (caller.expiresAt <= now) return fault('it has expired')
  if (caller.issuedAt > now + SKEW_SECONDS) return fault('it is not valid yet')
  return { txn, caller, scopes: caller.scopes }
}

function fault(message: string): TransactionFault {
  return { kind: 'fault', message }
}
