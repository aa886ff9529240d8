import type { Clock } from '@plat/core'
import { isFault, type Jws, parseJws } from '@plat/tokens'
import type { ProofFailure, Unreachable } from '../check.ts'
import { failed, isStop, unreachable } from '../parts/verdict.ts'
import { signatureHolds } from './algorithms.ts'
import type { AssertionKey } from './keys.ts'

/** Skew that is granted to the clocks of other issuers, in seconds. */
export const ISSUER_SKEW_SECONDS = 30

/** Where the keys of an assertion's issuer are found. */
export interface AssertionKeys {
  /** Null while they cannot be had. */
  read(): Promise<readonly AssertionKey[] | null>
  /** Like `read`, fetched again because a `kid` is unknown. */
  readAgain(): Promise<readonly AssertionKey[] | null>
}

export interface AssertionRules {
  readonly keys: AssertionKeys
  /** Names of `assertionAlgorithms`. */
  readonly algorithms: ReadonlySet<string>
  /** Header `typ` values in lower case; an absent one is allowed when the empty text is among them. */
  readonly types: ReadonlySet<string>
  /** One of the `aud` must be this. */
  readonly audience: string
  /** Seconds that `exp` may lie ahead; null for no limit. */
  readonly maxLifetimeSeconds: number | null
  readonly clock: Clock
}

/** Claims of an assertion whose signature, audience and times hold. */
export interface Assertion {
  readonly claims: Readonly<Record<string, unknown>>
  /** `exp` in milliseconds since the epoch. */
  readonly expiresAt: number
}

/** Parses the assertion in `proof.token`: strict compact JWS, signature not verified. */
export function readAssertion(token: string | null): Jws | ProofFailure {
  if (token === null || token === '') return failed('it carries no token')
  const jws = parseJws(token)
  return isFault(jws) ? failed(jws.message) : jws
}

/** Verifies a JWT that another issuer signed: header, signature, audience, times. */
export async function verifyAssertion(
  jws: Jws,
  rules: AssertionRules,
): Promise<Assertion | ProofFailure | Unreachable> {
  const { alg, kid, typ } = jws.header
  if (!rules.algorithms.has(alg)) return failed('the token algorithm is not accepted')
  if (!rules.types.has(typ ?? '')) return failed('the token has another "typ"')
  if (kid === null) return failed('the token names no "kid"')
  const key = await keyOf(kid, rules.keys)
  if (isStop(key)) return key
  const bytes = { bytes: jws.input, signature: jws.signature }
  if ((key.alg !== null && key.alg !== alg) || !signatureHolds(alg, key.key, bytes)) {
    return failed('the token signature is wrong')
  }
  return judgeClaims(jws.payload, rules)
}

async function keyOf(kid: string, keys: AssertionKeys): Promise<AssertionKey | ProofFailure | Unreachable> {
  const known = (await keys.read())?.find((key) => key.kid === kid)
  if (known !== undefined) return known
  const all = await keys.readAgain()
  if (all === null) return unreachable('the keys of the token issuer cannot be read')
  return all.find((key) => key.kid === kid) ?? failed('the token is signed by no key that is trusted')
}

function judgeClaims(claims: Jws['payload'], rules: AssertionRules): Assertion | ProofFailure {
  const { aud, exp, nbf = 0, iat = 0 } = claims
  const now = rules.clock.now() / 1000
  if (!isSeconds(exp) || !isSeconds(nbf) || !isSeconds(iat)) return failed('the token has no usable "exp"')
  if (now >= exp + ISSUER_SKEW_SECONDS) return failed('the token has expired')
  if (now < Math.max(nbf, iat) - ISSUER_SKEW_SECONDS) return failed('the token is not valid yet')
  if (rules.maxLifetimeSeconds !== null && exp - now > rules.maxLifetimeSeconds + ISSUER_SKEW_SECONDS) {
    return failed('the token lives longer than is accepted')
  }
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  if (!audiences.includes(rules.audience)) return failed('the token is for another audience')
  return { claims, expiresAt: (exp + ISSUER_SKEW_SECONDS) * 1000 }
}

/** A NumericDate (RFC 7519 section 2) that a JavaScript date can hold; fractions are allowed there. */
function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value < 1e11
}
