import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** How a bridge that listens on a port shows who it is, and knows the gateway. */
export interface TlsAccess {
  /** PEM. */
  readonly certificate: string
  /** PEM. */
  readonly privateKey: string
  /** SHA-256 of the token that the gateway presents; the token itself is not known here. */
  readonly tokenDigest: Uint8Array
}

const BEARER = /^Bearer ([\w-]{1,128})$/i

/** Returns whether a request has the token of the gateway. */
export function hasToken({ tokenDigest }: TlsAccess, { authorization }: IncomingHttpHeaders): boolean {
  const [, token] = BEARER.exec(authorization ?? '') ?? []
  return token !== undefined && timingSafeEqual(createHash('sha256').update(token).digest(), tokenDigest)
}
