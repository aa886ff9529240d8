import type { Clock } from '@plat/core'
import { sleep } from '../clock.ts'
import type { DenialCode } from '../denied/codes.ts'
import { denialIn, factsOfBody } from '../denied/error.ts'
import { retryAfterIn } from '../denied/retry-after.ts'
import type { LiveToken, TokenKeeper } from '../token/keeper.ts'
import { type GatewayAddresses, type Sendable, sendable } from './request.ts'
import { currentTraceparent } from './trace.ts'

/** Maximum sends of one call, and the longest pause between two, in milliseconds. */
const MAX_SENDS = 4
const LONGEST_PAUSE_MS = 30_000

/** Statuses that protocol clients handle: negotiation, an ended session, an unsupported stream. */
const FOR_CLIENTS: ReadonlySet<number> = new Set([400, 404, 405])

export interface GovernedOptions {
  /** Null if a forwarder adds the token, as with `plat run`. */
  readonly keeper: TokenKeeper | null
  readonly reach: GatewayAddresses
  readonly fetch: typeof globalThis.fetch
  readonly clock: Clock
  /** The URL in a proof: the gateway's public URL may differ. */
  readonly provenURL: (url: string) => string
}

/** How refusals are returned to a client. */
export interface RefusalHandling {
  /** `errors`: the call rejects with {@link DeniedError}. `answers`: as responses; the client retries by itself. */
  readonly refusals: 'errors' | 'answers'
}

/** Sends calls of one session with its token and proof, and repeats them if that may help. */
export class GovernedFetch {
  readonly #options: GovernedOptions
  /** The last nonce that the gateway required in proofs (RFC 9449, section 9). */
  #nonce: string | null = null

  constructor(options: GovernedOptions) {
    this.#options = options
  }

  async send(input: string | URL | Request, init: RequestInit | undefined, manner: RefusalHandling): Promise<Response> {
    const call = await sendable(input, init)
    this.#options.reach.check(call.url)
    const traceparent = currentTraceparent()
    if (traceparent !== null && !call.headers.has('traceparent')) call.headers.set('traceparent', traceparent)
    if (manner.refusals === 'answers') return this.#authorized(call)
    const response = await this.#repeated(call)
    const denied = FOR_CLIENTS.has(response.status) ? null : await denialIn(response)
    if (denied === null) return response
    await discard(response)
    throw denied
  }

  /** Repeats calls that were refused before forwarding, with a time to retry. */
  async #repeated(call: Sendable): Promise<Response> {
    for (let sends = 1; ; sends++) {
      const response = await this.#authorized(call)
      const now = this.#options.clock.now()
      const pauseMs = call.repeatable && sends < MAX_SENDS ? pauseOf(response, now) : null
      if (pauseMs === null || !(await isUndone(call, response))) return response
      await discard(response)
      await sleep(this.#options.clock, pauseMs, call.signal)
    }
  }

  /** Sends once, and again if a nonce is required or a newer token may be accepted. */
  async #authorized(call: Sendable): Promise<Response> {
    const { keeper } = this.#options
    if (keeper === null) return this.#options.fetch(call.url, { ...call.init, headers: call.headers })
    const token = await keeper.current(call.signal)
    const response = await this.#sendWith(call, token)
    if (response.status !== 401 || !call.repeatable) return response
    if (asksNonce(response) && this.#nonce !== null) {
      await discard(response)
      return this.#sendWith(call, token)
    }
    const denied = await denialIn(response)
    if (denied?.code !== 'unauthenticated') return response
    const other = await keeper.instead(token, call.signal)
    if (other.text === token.text) return response
    await discard(response)
    return this.#sendWith(call, other)
  }

  async #sendWith(call: Sendable, token: LiveToken): Promise<Response> {
    const { keeper, provenURL, fetch } = this.#options
    const headers = new Headers(call.headers)
    headers.delete('x-api-key')
    const prover = token.claims.jkt === null ? null : keeper?.prover
    headers.set('authorization', `${prover ? 'DPoP' : 'Bearer'} ${token.text}`)
    if (prover) {
      const { method, url } = call
      headers.set('dpop', prover.proof({ method, url: provenURL(url), token: token.text, nonce: this.#nonce }))
    }
    const response = await fetch(call.url, { ...call.init, headers })
    this.#nonce = response.headers.get('dpop-nonce') ?? this.#nonce
    return response
  }
}

function asksNonce({ headers }: Response): boolean {
  return headers.has('dpop-nonce') && /\buse_dpop_nonce\b/.test(headers.get('www-authenticate') ?? '')
}

/** Pause before the call is repeated, in milliseconds; null: it is not repeated. */
function pauseOf({ headers }: Response, now: number): number | null {
  if (headers.get('x-should-retry') === 'false') return null
  const pauseMs = retryAfterIn((name) => headers.get(name), now)
  return pauseMs !== null && pauseMs <= LONGEST_PAUSE_MS ? pauseMs : null
}

/**
 * Codes that the gateway uses only before it forwards a call. `revocations_unavailable` can also end a running call, and
 * `approval_pending` is returned to callers that requested it.
 */
const NOT_FORWARDED: ReadonlySet<DenialCode> = new Set([
  'request_timeout',
  'rate_limited',
  'backlog_full',
  'upstream_credential',
  'overloaded',
])

/** Statuses after which a read is repeated, and the methods that only read. */
const UNDONE: ReadonlySet<number> = new Set([408, 429, 503])
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether the call had no effect, so that it can be repeated. Only the gateway knows that; of others only reads are repeated. */
async function isUndone({ method }: Sendable, response: Response): Promise<boolean> {
  const facts = await factsOfBody(response)
  if (facts !== null) return NOT_FORWARDED.has(facts.code)
  return SAFE_METHODS.has(method.toUpperCase()) && UNDONE.has(response.status)
}

/** Frees the connection of an unread response. */
async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => {})
}
