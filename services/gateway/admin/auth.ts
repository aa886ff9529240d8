import { createHash, timingSafeEqual } from 'node:crypto'
import { AdminFault } from './fault.ts'
import { ALL_ROLES, type Principal } from './roles.ts'

/** Longest token that is looked at, in characters; longer ones are refused unread. */
const TOKEN_MAX_CHARS = 4096

/** RFC 6750, section 2.1: the scheme's name is case-insensitive. */
const BEARER = /^Bearer +([!-~]+)$/i

/** Tells who calls from the `authorization` header; throws `unauthenticated`. */
export type AdminAuthentication = (authorization: string | undefined) => Principal

/** The static token of `PLAT_ADMIN_TOKEN`. Hashes are compared, in constant time, so neither length nor prefix leaks. */
export function staticToken(token: string): AdminAuthentication {
  const expected = digest(token)
  const principal: Principal = { by: 'token:admin', roles: new Set(ALL_ROLES), byToken: true }
  return (authorization) => {
    if (authorization === undefined) throw new AdminFault('unauthenticated', 'a bearer token is required')
    const given = authorization.length > TOKEN_MAX_CHARS ? undefined : BEARER.exec(authorization)?.[1]
    if (given === undefined || !timingSafeEqual(digest(given), expected)) {
      throw new AdminFault('unauthenticated', 'the bearer token is not valid here')
    }
    return principal
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
