import { PresentedToken } from '@plat/tokens'
import type { WireRequest } from '../../call/index.ts'

/** Exactly one token in the alphabet of a compact JWS; the scheme's case does not matter (RFC 9110 section 11.1). */
const CREDENTIALS = /^(bearer|dpop) +([A-Za-z0-9_.-]+)$/i

/** The header `Authorization`, taken apart. */
export interface AuthorizationHeader {
  readonly scheme: 'bearer' | 'dpop'
  readonly token: PresentedToken
}

interface LastAuthorization extends AuthorizationHeader {
  readonly authorization: string
}

/**
 * Reads the header `Authorization`. Most connections show one token with every request, and reading and hashing it again costs more
 * than all stages together: the last one of each connection is kept taken apart. Only what its text says is kept, no verdict, and it
 * is compared with nobody else's, so that how long the comparison takes tells nothing.
 */
export class Credentials {
  readonly #last = new WeakMap<object, LastAuthorization>()

  /** Null: not one token in a scheme that is known. */
  read(authorization: string, body: WireRequest['body']): AuthorizationHeader | null {
    const connection = connectionOf(body)
    const last = connection === null ? undefined : this.#last.get(connection)
    if (last?.authorization === authorization) return last
    const [, scheme, token] = CREDENTIALS.exec(authorization) ?? []
    if (scheme === undefined || token === undefined) return null
    const shown = {
      authorization,
      scheme: scheme.toLowerCase() === 'dpop' ? 'dpop' : 'bearer',
      token: new PresentedToken(token),
    } as const
    if (connection !== null) this.#last.set(connection, shown)
    return shown
  }
}

/** What a body comes over; null where it came another way. */
function connectionOf(body: object): object | null {
  const socket = 'socket' in body ? body.socket : null
  return typeof socket === 'object' ? socket : null
}
