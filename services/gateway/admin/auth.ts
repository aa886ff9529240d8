import { createHash, timingSafeEqual } from 'node:crypto'
import { whenReady } from '@plat/core'
import { AdminError } from './error.ts'
import { type Grants, type Person, type Principal, principalOf, tokenPrincipal } from './roles.ts'
import type { RefusedTokens } from './throttle/refused.ts'

/** Maximum token length, in characters; longer tokens are refused without being read. */
const TOKEN_MAX_CHARS = 16_384

/** RFC 6750, section 2.1: the scheme's name is case-insensitive. */
const BEARER = /^Bearer +([!-~]+)$/i

/** Identifies people by their bearer tokens, or returns why a token is refused. */
export interface People {
  identify(token: string): Person | { readonly kind: 'fault' } | Promise<Person | { readonly kind: 'fault' }>
}

/**
 * Returns who calls, from the `authorization` header and the address of the peer. Throws `unauthenticated`, after a wait where the peer was refused
 * often, and `rate_limited` where too many of its requests wait already.
 */
export type AdminAuthentication = (authorization: string | undefined, peer: string) => Principal | Promise<Principal>

export interface AuthenticationOptions {
  /** The static token of `PLAT_ADMIN_TOKEN`; null: there is none. */
  readonly token: string | null
  /** Verifies OIDC bearer tokens; null: they are not accepted. */
  readonly people: People | null
  readonly grants: Grants
}

/** The static token has every role; people have those of their groups. */
export function authentication(refusals: RefusedTokens, identify: Identification): AdminAuthentication {
  return (authorization, peer) =>
    throttled(refusals, peer, () => identify(authorization), authorization === undefined ? 'missing' : 'invalid')
}

/** Identifies a caller, and slows down a peer whose credentials are refused. */
export async function throttled<T>(
  refusals: RefusedTokens,
  peer: string,
  identify: () => T | Promise<T>,
  reason: 'missing' | 'invalid',
): Promise<T> {
  if (refusals.isThrottled(peer)) {
    throw new AdminError('rate_limited', 'too many tokens from this address were refused: try again later')
  }
  try {
    return await identify()
  } catch (error) {
    if (error instanceof AdminError && error.code === 'unauthenticated') await refusals.refuse(peer, reason)
    throw error
  }
}

/** Returns the caller of an `Authorization` header. Throws `unauthenticated`. */
type Identification = (authorization: string | undefined) => Principal | Promise<Principal>

/** Identifies callers without slowing anybody down. */
export function identification({ token, people, grants }: AuthenticationOptions): Identification {
  const holder = tokenPrincipal(grants)
  const isStatic = token === null ? () => false : staticToken(token)
  return (authorization) => {
    if (authorization === undefined) throw new AdminError('unauthenticated', 'a bearer token is required')
    const given = authorization.length > TOKEN_MAX_CHARS ? undefined : BEARER.exec(authorization)?.[1]
    if (given === undefined) throw invalid()
    if (isStatic(given)) return holder
    if (people === null) throw invalid()
    return whenReady(people.identify(given), known, grants)
  }
}

function known(person: Person | { readonly kind: 'fault' }, grants: Grants): Principal {
  if ('kind' in person) throw invalid()
  return principalOf(person, grants)
}

function invalid(): AdminError {
  return new AdminError('unauthenticated', 'the bearer token is not valid here')
}

/** Hashes are compared, in constant time, so neither length nor prefix leaks. */
function staticToken(token: string): (given: string) => boolean {
  const expected = digest(token)
  return (given) => timingSafeEqual(digest(given), expected)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
