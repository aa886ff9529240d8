import { type Clock, reasonOf } from '@plat/core'
import { createDialer } from '@plat/http'
import type { Log } from '@plat/process'
import {
  decodeTransaction,
  isFault,
  type Jws,
  joinSources,
  jwksSource,
  type KeySource,
  parseJws,
  pemSource,
  type SessionClaims,
  TRANSACTION_TYPE,
} from '@plat/tokens'
import type { IdentitySettings } from '../flags.ts'

/** How far the clock of the gateway may be ahead of ours, in seconds. */
const SKEW_SECONDS = 5
/** Refresh interval of keys from a URL, in seconds (docs/spec/broker-api.md, "Limits"). */
const REFRESH_SECONDS = 300

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
  if (jws.header.typ !== TRANSACTION_TYPE) return fault('"typ" is not txntoken+jwt')
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
  const claims = decodeTransaction(payload)
  if (isFault(claims)) return claims
  const { txn, caller } = claims
  if (caller.trustDomain !== trustDomain) return fault('"sub" is not a session of the trust domain')
  if (!caller.audiences.includes(audience)) return fault('it is for another audience')
  if (caller.expiresAt <= now) return fault('it has expired')
  if (caller.issuedAt > now + SKEW_SECONDS) return fault('it is not valid yet')
  return { txn, caller, scopes: caller.scopes }
}

function fault(message: string): TransactionFault {
  return { kind: 'fault', message }
}
