import { hash, timingSafeEqual } from 'node:crypto'

/** Says whether an `Authorization` header carries the broker token. */
export type BrokerGuard = (authorization: string | undefined) => boolean

/** What a header can carry without two readers decoding it differently. */
const HEADER_SAFE = /^[\x21-\x7e]+$/
const BEARER = /^bearer +(.+)$/i

/**
 * The guard of the broker-token endpoints (document 1, "Authentication"). Both sides are hashed, so that the comparison
 * takes the same time whatever was sent. Throws without a token: the broker does not start without one.
 */
export function createBrokerGuard(token: string | null): BrokerGuard {
  if (token === null) throw new Error('PLAT_BROKER_TOKEN or PLAT_BROKER_TOKEN_FILE must be set')
  if (!HEADER_SAFE.test(token)) {
    throw new Error('PLAT_BROKER_TOKEN holds white space or characters outside ASCII: a header cannot carry it')
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
