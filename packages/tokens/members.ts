import { decodeBase64url, isObject } from '@plat/core'
import { fault, type TokenFault } from './fault.ts'

/** Validity claims of every kind of token. Times are Unix seconds. */
export interface TimedClaims {
  readonly issuer: string
  readonly audiences: readonly string[]
  readonly issuedAt: number
  readonly notBefore: number | null
  readonly expiresAt: number
}

/** Maximum number of audiences of a token. */
const MAX_AUDIENCES = 16

/** The payload of a token. */
export type Members = Readonly<Record<string, unknown>>

/** Thrown by readers of single claims, to avoid a check after every member; `readingClaims` converts it to a fault. */
export class InvalidClaimError extends Error {
  readonly reason: 'malformed' | 'binding'

  constructor(message: string, reason: 'malformed' | 'binding' = 'malformed') {
    super(message)
    this.reason = reason
  }
}

/** Returns the result of `read`, or the fault of the first invalid claim. */
export function readingClaims<C>(read: () => C): C | TokenFault {
  try {
    return read()
  } catch (error) {
    if (error instanceof InvalidClaimError) return fault(error.reason, error.message)
    throw error
  }
}

/** Returns a required claim: well-formed text, not empty. */
export function textClaim(members: Members, name: string): string {
  const value = members[name]
  if (typeof value !== 'string' || value === '' || !value.isWellFormed()) {
    throw new InvalidClaimError(`claim "${name}" is missing or not a string`)
  }
  return value
}

/** Returns null when the claim is absent. */
export function optionalClaim(members: Members, name: string): string | null {
  return members[name] === undefined ? null : textClaim(members, name)
}

/** Returns space-separated entries; an absent or empty claim gives the empty list. */
export function wordsClaim(members: Members, name: string): readonly string[] {
  const value = members[name]
  if (value === undefined || value === '') return []
  const entries = textClaim(members, name).split(' ')
  if (entries.includes('')) throw new InvalidClaimError(`claim "${name}" is not separated by single spaces`)
  return entries
}

/** Checks for well-formed text, not empty. */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.isWellFormed()
}

/** Integers only: `1e400` is infinite, and a fraction is not a valid date. */
export function secondsClaim(members: Members, name: string): number {
  const value = members[name]
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new InvalidClaimError(`claim "${name}" is missing or not a whole number of seconds`)
  }
  return value
}

/** Reads the times of a token; one without `iat` may be of any age. */
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
    throw new InvalidClaimError('claim "aud" is missing or not a string or list of strings')
  }
  return list
}

/**
 * Returns the thumbprint of the key that `cnf` binds the token to, null without one. RFC 7800: an unknown confirmation method must not be ignored.
 */
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

/** Returns the configured claim, or the first of the usual ones. An email address that the provider marks as unverified identifies no user. */
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

/** Returns a claim by its name, or by a dotted path when no claim has the whole name: `realm_access.roles`. */
export function claimAt(payload: Members, path: string): unknown {
  if (Object.hasOwn(payload, path)) return payload[path]
  let value: unknown = payload
  for (const name of path.split('.')) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

/** Like `claimAt` for well-formed text. */
export function textClaimAt(payload: Members, path: string): string {
  const value = claimAt(payload, path)
  if (!isText(value)) throw new InvalidClaimError(`claim "${path}" is missing or not a string`)
  return value
}

/** Rejects control characters, because names go into records and headers. */
export function plainClaim(text: string, claim: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  if (/[\u0000-\u001f\u007f]/.test(text)) throw new InvalidClaimError(`claim "${claim}" has control characters`)
  return text
}
