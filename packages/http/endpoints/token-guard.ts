import { hash, timingSafeEqual } from 'node:crypto'

/** Returns whether an `Authorization` header carries the service token. */
export type TokenGuard = (authorization: string | undefined) => boolean

/** Characters that every reader of a header decodes alike. */
const HEADER_SAFE = /^[\x21-\x7e]+$/
const BEARER = /^bearer +(\S.*)$/i

/**
 * Creates the guard of endpoints that require the service token (docs/spec/broker-api.md, "Authentication"); `variable` names its source. Both sides
 * are hashed, so that comparison time does not depend on the input. Throws without a token: a service must not start without one.
 */
export function createTokenGuard(variable: string, token: string | null): TokenGuard {
  if (token === null) throw new Error(`${variable} or ${variable}_FILE must be set`)
  if (!HEADER_SAFE.test(token)) {
    throw new Error(`${variable} holds white space or characters outside ASCII: a header cannot carry it`)
  }
  const expected = sha256(token)
  return (authorization) => {
    const sent = BEARER.exec(authorization ?? '')?.[1]
    return sent !== undefined && timingSafeEqual(sha256(sent), expected)
  }
}

function sha256(text: string): Buffer {
  return hash('sha256', text, 'buffer')
}
