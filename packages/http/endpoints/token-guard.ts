import { hash, timingSafeEqual } from 'node:crypto'

/** Says whether an `Authorization` header carries the token of the service. */
export type TokenGuard = (authorization: string | undefined) => boolean

/** What a header can carry without two readers decoding it differently. */
const HEADER_SAFE = /^[\x21-\x7e]+$/
const BEARER = /^bearer +(\S.*)$/i

/**
 * The guard of endpoints that the service's own token opens (docs/spec/broker-api.md, "Authentication"); `variable` is where it was read from. Both
 * sides are hashed, so that the comparison takes the same time whatever was sent. Throws without a token: no service starts without one.
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
