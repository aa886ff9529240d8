import { PresentedToken } from '@plat/tokens'
import type { WireRequest } from '../../call/index.ts'

/** Exactly one token in the alphabet of a compact JWS. The scheme is case-insensitive (RFC 9110 section 11.1). */
const CREDENTIALS = /^(bearer|dpop) +([A-Za-z0-9_.-]+)$/i

export interface AuthorizationHeader {
  readonly scheme: 'bearer' | 'dpop'
  readonly token: PresentedToken
}

interface LastAuthorization extends AuthorizationHeader {
  readonly authorization: string
}

/**
 * Parses the header `Authorization`. Most connections send one token with every request, and parsing and hashing it costs more than all
 * stages together, so the last parsed header of each connection is cached. The cache holds only the parsed text, no verdict, and is
 * never compared across connections, so timing reveals nothing about other callers.
 */
export class Credentials {
  readonly #last = new WeakMap<object, LastAuthorization>()

  /** Returns null unless the header has exactly one token with a known scheme. */
  read(authorization: string, body: WireRequest['body']): AuthorizationHeader | null {
    const connection = connectionOf(body)
    const last = connection === null ? undefined : this.#last.get(connection)
    if (last?.authorization === authorization) return last
    const [, scheme, token] = CREDENTIALS.exec(authorization) ?? []
    if (scheme === undefined || token === undefined) return null
    const presented = {
      authorization,
      scheme: scheme.toLowerCase() === 'dpop' ? 'dpop' : 'bearer',
      token: new PresentedToken(token),
    } as const
    if (connection !== null) this.#last.set(connection, presented)
    return presented
  }
}

/** Returns the connection of a body, or null if it has none. */
function connectionOf(body: object): object | null {
  const socket = 'socket' in body ? body.socket : null
  return typeof socket === 'object' ? socket : null
}
