import { decodeBase64url } from '@plat/core'
import { fault, type TokenFault } from './fault.ts'
import { isObject } from './jws.ts'
import type { TimedClaims } from './verifier.ts'

/** Audiences that a token names at most. */
const MAX_AUDIENCES = 16

/** The payload of a token. */
export type Members = Readonly<Record<string, unknown>>

/** Thrown by the readers of single claims, where it saves a test after every member; `readingClaims` answers it as a fault. */
export class InvalidClaimError extends Error {
  readonly reason: 'malformed' | 'binding'

  constructor(message: string, reason: 'malformed' | 'binding' = 'malformed') {
    super(message)
    this.reason = reason
  }
}

/** What `read` makes of the claims, or the fault of the first bad one. */
export function readingClaims<C>(read: () => C): C | TokenFault {
  try {
    return read()
  } catch (error) {
    if (error instanceof InvalidClaimError) return fault(error.reason, error.message)
    throw error
  }
}

/** A claim that must be there: well-formed text, not empty. */
export function textClaim(members: Members, name: string): string {
  const value = members[name]
  if (typeof value !== 'string' || value === '' || !value.isWellFormed()) {
    throw new InvalidClaimError(`claim "${name}" is missing or no string`)
  }
  return value
}

/** Null when the claim is absent. */
export function optionalClaim(members: Members, name: string): string | null {
  return members[name] === undefined ? null : textClaim(members, name)
}

/** Space-separated entries; an absent or empty claim is the empty list. */
export function wordsClaim(members: Members, name: string): readonly string[] {
  const value = members[name]
  if (value === undefined || value === '') return []
  const entries = textClaim(members, name).split(' ')
  if (entries.includes('')) throw new InvalidClaimError(`claim "${name}" is not separated by single spaces`)
  return entries
}

/** Well-formed text, not empty. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.isWellFormed()
}

/** Integers only: `1e400` is infinite, and a fraction is nobody's date. */
export function secondsClaim(members: Members, name: string): number {
  const value = members[name]
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new InvalidClaimError(`claim "${name}" is missing or no whole number of seconds`)
  }
  return value
}

/** What a token says of its own validity; one without `iat` may be of any age. */
export function timedClaims(payload: Members): TimedClaims {
  return {
    issuer: textClaim(payload, 'iss'),
    audiences: audienceClaim(payload.aud),
    issuedAt: payload.iat === undefined ? 0 : secondsClaim(payload, 'iat'),
    notBefore: payload.nbf === undefined ? null : secondsClaim(payload, 'nbf'),
    expiresAt: secondsClaim(payload, 'exp'),
  }
}

/** `aud`: one name, or a list of at most 16. */
export function audienceClaim(value: unknown): readonly string[] {
  const list = typeof value === 'string' ? [value] : value
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_AUDIENCES || !list.every(isText)) {
    throw new InvalidClaimError('claim "aud" is missing or no string or list of strings')
  }
  return list
}

/** Thumbprint of the key that `cnf` binds the token to, null without one. RFC 7800: a confirmation that is not understood must not be passed over. */
export function boundKeyClaim(cnf: unknown): string | null {
  if (cnf === undefined) return null
  if (!isObject(cnf) || typeof cnf.jkt !== 'string' || Object.keys(cnf).length !== 1 || !isThumbprint(cnf.jkt)) {
    throw new InvalidClaimError('claim "cnf" is not understood', 'binding')
  }
  return cnf.jkt
}

const THUMBPRINT_BYTES = 32

/** A SHA-256 thumbprint in canonical base64url. */
export function isThumbprint(value: string): boolean {
  return decodeBase64url(value)?.length === THUMBPRINT_BYTES
}

/** The configured claim, or the first of the usual ones. An address that the provider says is not verified names nobody. */
export function userClaim(payload: Members, usernameClaim: string): string {
  if (usernameClaim === 'email' && payload.email_verified === false)
    throw new InvalidClaimError('claim "email" is not verified')
  if (usernameClaim !== '') return plainClaim(textClaimAt(payload, usernameClaim), usernameClaim)
  if (payload.preferred_username !== undefined) {
    return plainClaim(textClaim(payload, 'preferred_username'), 'preferred_username')
  }
  if (payload.email !== undefined && payload.email_verified !== false)
    return plainClaim(textClaim(payload, 'email'), 'email')
  return plainClaim(textClaim(payload, 'sub'), 'sub')
}

/** A claim by its name, or by a dotted path where no claim has the whole name: `realm_access.roles`. */
export function claimAt(payload: Members, path: string): unknown {
  if (Object.hasOwn(payload, path)) return payload[path]
  let value: unknown = payload
  for (const name of path.split('.')) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

/** The same, which must be well-formed text. */
export function textClaimAt(payload: Members, path: string): string {
  const value = claimAt(payload, path)
  if (!isText(value)) throw new InvalidClaimError(`claim "${path}" is missing or no string`)
  return value
}

/** Names go into records and headers: no control characters. */
export function plainClaim(text: string, claim: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (/[\u0000-\u001f\u007f]/.test(text)) throw new InvalidClaimError(`claim "${claim}" has control characters`)
  return text
}
