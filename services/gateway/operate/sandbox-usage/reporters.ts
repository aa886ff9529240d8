import { hash } from 'node:crypto'
import { type Clock, ExpiringMap } from '@plat/core'
import { type KubernetesApi, KubernetesApiError, member, textOf } from '@plat/kubernetes'
import { MAX_TOKEN_CHARS, parseJws } from '@plat/tokens'
import { AdminError } from '../../admin/index.ts'

/** How long a successful review is cached, in milliseconds. */
const CACHED_MS = 60_000
/** Maximum number of cached reviews. */
const MAX_CACHED = 1_000
/** Maximum number of concurrent reviews. */
const MAX_REVIEWS = 16
const BEARER = /^Bearer +([!-~]+)$/i

export interface ReportersParts {
  readonly api: KubernetesApi
  readonly reporters: readonly string[]
  readonly audience: string
  readonly clock: Clock
}

/** Authenticates reporters by service-account tokens, which the API server reviews. */
export class Reporters {
  readonly #parts: ReportersParts
  readonly #listed: ReadonlySet<string>
  readonly #believed: ExpiringMap<string>
  #reviewing = 0

  constructor(parts: ReportersParts) {
    this.#parts = parts
    this.#listed = new Set(parts.reporters)
    this.#believed = new ExpiringMap({ clock: parts.clock, cap: MAX_CACHED })
  }

  /** Returns the username of a listed service account. Throws `AdminError`. */
  async identify(authorization: string | undefined): Promise<string> {
    const token = authorization === undefined ? undefined : BEARER.exec(authorization)?.[1]
    if (token === undefined || token.length > MAX_TOKEN_CHARS)
      throw new AdminError('unauthenticated', 'the token of a service account is required')
    const key = hash('sha256', token, 'base64')
    const known = this.#believed.get(key)
    if (known !== null) return known
    this.#refuseStranger(token)
    const username = await this.#review(token)
    if (!this.#listed.has(username)) throw notListed()
    this.#believed.insert(key, username, this.#parts.clock.now() + CACHED_MS)
    return username
  }

  /** Refuses tokens that do not claim to be of a reporter, without a request to the API server. */
  #refuseStranger(token: string): void {
    const jws = parseJws(token)
    if ('kind' in jws) throw new AdminError('unauthenticated', 'the token is not a token of a service account')
    const { sub } = jws.payload
    if (typeof sub !== 'string' || !this.#listed.has(sub)) throw notListed()
  }

  async #review(token: string): Promise<string> {
    const { api, audience } = this.#parts
    if (this.#reviewing >= MAX_REVIEWS) throw new AdminError('backlog_full', 'too many tokens are being reviewed')
    this.#reviewing++
    try {
      const spec = { token, audiences: [audience] }
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec }
      const answer = await api.ask({ method: 'POST', path: '/apis/authentication.k8s.io/v1/tokenreviews', body })
      return reviewed(member(answer.body, 'status'), audience)
    } catch (error) {
      if (error instanceof KubernetesApiError)
        throw new AdminError('state_unavailable', `the API server does not review tokens now: ${error.message}`)
      throw error
    } finally {
      this.#reviewing--
    }
  }
}

/** Returns the username from a token review. */
function reviewed(status: Readonly<Record<string, unknown>>, audience: string): string {
  const { authenticated, audiences, error = '' } = status
  if (authenticated !== true || error !== '')
    throw new AdminError('unauthenticated', 'the API server does not authenticate the token')
  // A server without audience support returns none: then the token may be for the API server itself.
  if (!Array.isArray(audiences) || !audiences.includes(audience))
    throw new AdminError('unauthenticated', `the token is not for the audience ${audience}`)
  return textOf(member(status, 'user'), 'username')
}

function notListed(): AdminError {
  return new AdminError('forbidden', 'the token is of no service account in sandboxUsage.reporters')
}
