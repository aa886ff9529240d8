import type { FastifyRequest } from 'fastify'
import { AdminError } from '../error.ts'
import { type Grants, type Principal, principalOf, tokenPrincipal } from '../roles.ts'
import { type BrowserSession, type BrowserSessions, csrfOf, isEqual, tokenMarkOf } from './sessions.ts'
import { cookieIn, cookieName, cookieOf, isSameOrigin, originOf } from './site.ts'

/** Header of every request of the console that is not a read. */
const CSRF_HEADER = 'x-plat-csrf'
const READS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

export interface BrowserAuthOptions {
  readonly sessions: BrowserSessions
  readonly grants: Grants
  /** The static token; null: there is none. */
  readonly token: string | null
  /** Whether people can log in. */
  readonly hasPeople: boolean
  /** Origin of `consoleURL`; null: not set. */
  readonly consoleOrigin: string | null
}

/** The head of a request. */
type BrowserRequest = Pick<FastifyRequest, 'method' | 'protocol' | 'headers'>

/** With the address of its peer. */
type PeerRequest = BrowserRequest & Pick<FastifyRequest, 'ip'>

/** A request with a session of the console. */
export interface BrowserCaller {
  readonly principal: Principal
  readonly session: BrowserSession
  readonly secret: string
}

/** Authenticates requests of the console by the cookie of its session. */
export class BrowserAuth {
  readonly #options: BrowserAuthOptions

  constructor(options: BrowserAuthOptions) {
    this.#options = options
  }

  get sessions(): BrowserSessions {
    return this.#options.sessions
  }

  /** Returns the console's origin for this request. Throws `forbidden` for another Host. */
  origin(request: BrowserRequest): string {
    const origin = originOf(request.headers.host, request.protocol === 'https', this.#options.consoleOrigin)
    if (origin !== null) return origin
    throw new AdminError('forbidden', 'the console is not served under this host name: set consoleURL')
  }

  /** Throws `forbidden` unless a page of the console sent the request. */
  demandSameOrigin(request: BrowserRequest): void {
    if (isSameOrigin(request.headers, this.origin(request), READS.has(request.method))) return
    throw new AdminError('forbidden', 'this request does not come from a page of the console')
  }

  /** Returns the secret in the cookie, or null. */
  secretIn({ headers, protocol }: BrowserRequest): string | null {
    if (headers.cookie === undefined) return null
    const origin = originOf(headers.host, protocol === 'https', this.#options.consoleOrigin)
    return origin === null ? null : cookieIn(headers.cookie, cookieName(origin))
  }

  /** Returns `Set-Cookie` for a new session, or the removal of the cookie. */
  cookie(request: BrowserRequest, begun: { readonly secret: string; readonly lifetimeMs: number } | null): string {
    const name = cookieName(this.origin(request))
    return begun === null ? cookieOf(name, '', 0) : cookieOf(name, begun.secret, Math.floor(begun.lifetimeMs / 1000))
  }

  /**
   * Returns the caller of a request with a cookie; roles are those of now. Throws `unauthenticated` if the session has ended, `forbidden` if no page
   * of the console sent the request, `rate_limited` if the session is unknown here and its peer may not look it up now: it may still be valid.
   */
  async identify(request: PeerRequest, secret: string): Promise<BrowserCaller> {
    this.demandSameOrigin(request)
    const session = await this.sessions.find(secret, request.ip)
    if (session === 'unread')
      throw new AdminError('rate_limited', 'too many sessions from this address are unknown: try again in a second')
    const principal = session === null ? null : this.#principalOf(session, secret)
    if (session === null || principal === null) {
      throw new AdminError('unauthenticated', 'the session of the console has ended: log in again')
    }
    if (!READS.has(request.method)) this.#demandCsrf(request, secret)
    return { principal, session, secret }
  }

  /** Returns the caller of a session as of now, without counting it as used; null if it has ended. */
  renewed(session: BrowserSession, secret: string): Principal | null {
    return this.sessions.isLive(session) ? this.#principalOf(session, secret) : null
  }

  #demandCsrf({ headers }: BrowserRequest, secret: string): void {
    const given = headers[CSRF_HEADER]
    if (typeof given === 'string' && isEqual(given, csrfOf(secret))) return
    throw new AdminError('forbidden', `the header ${CSRF_HEADER} must be the value that /console/session returns`)
  }

  /** Null: the static token has changed, or people can no longer log in. */
  #principalOf({ person, tokenMark }: BrowserSession, secret: string): Principal | null {
    const { token, hasPeople, grants } = this.#options
    if (person !== null) return hasPeople ? principalOf(person, grants) : null
    return token !== null && isEqual(tokenMark, tokenMarkOf(secret, token)) ? tokenPrincipal(grants) : null
  }
}
