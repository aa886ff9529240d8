import { readFile } from 'node:fs/promises'
import { readText } from '@plat/config'
import { base32, type Clock, type Ids, readJsonObject } from '@plat/core'
import { type Dialer, dialFault, joinedBundles } from '@plat/http'
import type { Log } from '@plat/process'
import {
  createJwtVerifier,
  discoverIssuer,
  endpointOf,
  isFault,
  issuerKeys,
  type Members,
  readingClaims,
  type TimedClaims,
  timedClaims,
  userClaim,
  type Verifier,
} from '@plat/tokens'
import type { CibaConfig } from './config.ts'

export interface CibaOptions {
  readonly config: { readonly ciba: CibaConfig }
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  /** CA bundle in addition to `caFile` and the system's; null: none. */
  readonly extraCA: string | null
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
}

/** Timeout of one request (connect, headers and body), in milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000
/** Maximum response of the provider, in bytes. */
const ANSWER_MAX_BYTES = 64 * 1024
/** Maximum size of the client secret file, in bytes. */
const SECRET_MAX_BYTES = 64 * 1024
/** Interval between fetches of the keys, in seconds. */
const REFRESH_SECONDS = 300
/** Leeway for times of ID tokens, in seconds. */
const LEEWAY_SECONDS = 60
/** CIBA Core, section 7.3: default poll interval. */
const INTERVAL_SECONDS = 5
/** Length of the code that a user compares: 40 bits, not guessable during an approval. */
const CODE_CHARS = 8
/** OAuth error codes. Other texts of a provider are never repeated. */
const ERROR_CODE = /^[a-z0-9_]{1,64}$/
const GRANT = 'urn:openid:params:grant-type:ciba'

export interface PendingAuthentication {
  readonly requestId: string
  readonly code: string
  /** Milliseconds since the epoch. */
  readonly until: number
  readonly intervalMs: number
}

/** The user cannot be prompted. `again`: a retry may succeed. */
export interface Unavailable {
  readonly kind: 'unavailable'
  readonly why: string
  readonly again: boolean
}

/** The user has not agreed; no fallback applies. `byUser`: an explicit refusal. */
export interface NotAgreed {
  readonly kind: 'notAgreed'
  readonly why: string
  readonly byUser: boolean
}

/**
 * Errors of the backchannel endpoint (CIBA Core, section 13) that mean that this user cannot be prompted. Of the others `access_denied`
 * is a refusal, and the rest are configuration errors, which must not replace the user's consent.
 */
const CANNOT_BE_ASKED: ReadonlySet<string> = new Set([
  'unknown_user_id',
  'expired_login_hint_token',
  'missing_user_code',
  'invalid_user_code',
])

/** Prompts users on their devices to confirm a call (OpenID Connect CIBA Core 1.0, poll mode). */
export interface Ciba {
  readonly fallback: 'approvers' | 'deny'
  /** Prompts this user for at most `leftMs` milliseconds. Never rejects. */
  prompt(user: string, leftMs: number): Promise<PendingAuthentication | Unavailable | NotAgreed>
  /** Returns the state of a prompt. Timeouts and errors are not agreement. Never rejects. */
  poll(authentication: PendingAuthentication, user: string): Promise<'pending' | 'slow_down' | 'confirmed' | NotAgreed>
  close(): void
}

interface Confirmed extends TimedClaims {
  readonly user: string
  readonly acr: unknown
}

/** Fetches the provider's keys; a failed fetch is retried. Rejects if `caFile` cannot be read. */
export async function openCiba(options: CibaOptions): Promise<Ciba> {
  const { config, clock, log, dialer, extraCA } = options
  const { issuer, jwksURL, clientID, caFile, userClaim: claim } = config.ciba
  const caPEM = joinedBundles([caFile === '' ? null : await readFile(caFile, 'utf8'), extraCA])
  const algorithms = ['RS256', 'ES256', 'EdDSA'] as const
  const keys = issuerKeys({ issuer, jwksURL, algorithms, refreshSeconds: REFRESH_SECONDS, dialer, clock, log, caPEM })
  const verifier = createJwtVerifier<Confirmed>({
    keys,
    issuer,
    audience: clientID,
    leewaySeconds: LEEWAY_SECONDS,
    algorithms: new Set(algorithms),
    clock,
    takesType: (typ) => typ === null || typ === 'jwt',
    decode: ({ payload }) =>
      readingClaims(() => ({ ...timedClaims(payload), user: userClaim(payload, claim), acr: payload.acr })),
  })
  await keys.start()
  return new Client({ ...options, caPEM, verifier, close: () => keys.close() })
}

interface Parts extends CibaOptions {
  readonly caPEM: string | null
  readonly verifier: Verifier<Confirmed>
  readonly close: () => void
}

class Client implements Ciba {
  readonly fallback: Ciba['fallback']
  readonly close: () => void
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
    this.fallback = parts.config.ciba.fallback
    this.close = parts.close
  }

  async prompt(user: string, leftMs: number): Promise<PendingAuthentication | Unavailable | NotAgreed> {
    const { clock, ids, config } = this.#parts
    const { scopes, acrValues, requestedExpirySeconds, bindingMessagePrefix } = config.ciba
    const code = base32(ids.random(CODE_CHARS)).slice(0, CODE_CHARS).toUpperCase()
    const message = bindingMessagePrefix === '' ? code : `${bindingMessagePrefix}-${code}`
    const leftSeconds = Math.max(1, Math.floor(leftMs / 1000))
    const seconds = requestedExpirySeconds === 0 ? leftSeconds : Math.min(requestedExpirySeconds, leftSeconds)
    const answer = await this.#post('backchannelAuthenticationEndpoint', {
      scope: [...new Set(['openid', ...scopes])].join(' '),
      login_hint: user,
      binding_message: message,
      requested_expiry: String(seconds),
      ...(acrValues.length > 0 && { acr_values: acrValues.join(' ') }),
    })
    if ('kind' in answer) return answer
    const { auth_req_id: requestId, expires_in: expiresIn, interval = INTERVAL_SECONDS } = answer.members
    if (answer.status !== 200) return this.#notAsked(user, errorIn(answer))
    if (typeof requestId !== 'string' || !isSeconds(expiresIn) || !isSeconds(interval)) {
      return this.#notAsked(user, 'the provider gave no auth_req_id, expires_in or interval')
    }
    const until = clock.now() + Math.min(expiresIn, seconds) * 1000
    return { requestId, code: message, until, intervalMs: interval * 1000 }
  }

  async poll({ requestId, until }: PendingAuthentication, user: string): ReturnType<Ciba['poll']> {
    const { clock, log } = this.#parts
    if (clock.now() >= until) return notAgreed('the user did not answer in time')
    const answer = await this.#post('tokenEndpoint', { grant_type: GRANT, auth_req_id: requestId })
    // The prompt remains open until it expires, even if the provider is unreachable.
    if ('kind' in answer) return 'pending'
    const error = answer.status === 200 ? null : errorIn(answer)
    if (error === 'authorization_pending') return 'pending'
    if (error === 'slow_down') return 'slow_down'
    if (error === 'access_denied') return { ...notAgreed('the user did not confirm it'), byUser: true }
    if (error === 'expired_token') return notAgreed('the user did not answer in time')
    const fault = error ?? (await this.#faultOf(answer.members.id_token, user))
    if (fault === null) return 'confirmed'
    log.error({ user, fault }, 'a user confirmation is not valid')
    return notAgreed('the user did not confirm it')
  }

  #notAsked(user: string, error: string): Unavailable | NotAgreed {
    if (CANNOT_BE_ASKED.has(error)) return unavailable(error)
    if (error === 'access_denied') return { ...notAgreed('the user did not confirm it'), byUser: true }
    this.#parts.log.error({ user, error }, 'the identity provider refuses to prompt users: check block ciba')
    return notAgreed(`the provider refused the request: ${error}`)
  }

  /** Returns null if this user has confirmed with the required assurance. */
  async #faultOf(token: unknown, user: string): Promise<string | null> {
    const { verifier, config } = this.#parts
    const { acrValues } = config.ciba
    if (typeof token !== 'string') return 'there is no ID token'
    const claims = await verifier.verify(token)
    if (isFault(claims)) return claims.message
    if (claims.user !== user) return 'the ID token is of another user'
    if (acrValues.length === 0 || acrValues.some((acr) => acr === claims.acr)) return null
    return 'the ID token has none of ciba.acrValues'
  }

  async #post(
    name: 'backchannelAuthenticationEndpoint' | 'tokenEndpoint',
    form: Readonly<Record<string, string>>,
  ): Promise<ProviderResponse | Unavailable> {
    const { dialer, caPEM, config } = this.#parts
    try {
      const secret = await this.#secret()
      if (secret === '') return { ...unavailable('ciba.clientSecretFile is missing, empty or unreadable'), again: true }
      const { headers, members } = clientAuth(config.ciba, secret)
      const { status, bytes } = await dialer.fetchBytes(await this.#endpoint(name), 'jwks', {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          accept: 'application/json',
          'user-agent': 'plat-gateway',
          ...headers,
        },
        body: new URLSearchParams({ ...form, ...members }).toString(),
        maxBytes: ANSWER_MAX_BYTES,
        timeoutMs: REQUEST_TIMEOUT_MS,
        ...(caPEM !== null && { caPEM }),
      })
      if (status >= 500) return { ...unavailable(`the provider answered ${status}`), again: true }
      const answer = readJsonObject(bytes)
      if (answer === null) return { ...unavailable('the provider sent no JSON object'), again: true }
      return { status, members: answer }
    } catch (error) {
      return { ...unavailable(`the provider gave no answer (${dialFault(error)})`), again: true }
    }
  }

  /** Returns null for a public client. Read for each request, so that a new secret applies at once. */
  async #secret(): Promise<string | null> {
    const { clientSecretFile } = this.#parts.config.ciba
    if (clientSecretFile === '') return null
    return (await readText(clientSecretFile, SECRET_MAX_BYTES))?.trim() ?? ''
  }

  async #endpoint(name: 'backchannelAuthenticationEndpoint' | 'tokenEndpoint'): Promise<string> {
    const { config, dialer, caPEM } = this.#parts
    const { issuer, [name]: configured } = config.ciba
    if (configured !== '') return configured
    const metadata = await discoverIssuer({ issuer, dialer, caPEM })
    return endpointOf(metadata, name === 'tokenEndpoint' ? 'token_endpoint' : 'backchannel_authentication_endpoint')
  }
}

interface ProviderResponse {
  readonly status: number
  readonly members: Members
}

/** RFC 6749, section 2.3.1. */
function clientAuth(
  { clientAuth: how, clientID }: { readonly clientAuth: 'basic' | 'post'; readonly clientID: string },
  secret: string | null,
): { readonly headers: Readonly<Record<string, string>>; readonly members: Readonly<Record<string, string>> } {
  if (secret === null) return { headers: {}, members: { client_id: clientID } }
  if (how === 'post') return { headers: {}, members: { client_id: clientID, client_secret: secret } }
  const encoded = [clientID, secret].map((text) => new URLSearchParams({ x: text }).toString().slice('x='.length))
  return { headers: { authorization: `Basic ${Buffer.from(encoded.join(':')).toString('base64')}` }, members: {} }
}

function errorIn({ status, members: { error } }: ProviderResponse): string {
  return typeof error === 'string' && ERROR_CODE.test(error) ? error : `the provider answered ${status}`
}

function unavailable(why: string): Unavailable {
  return { kind: 'unavailable', why, again: false }
}

function notAgreed(why: string): NotAgreed {
  return { kind: 'notAgreed', why, byUser: false }
}

function isSeconds(value: unknown): value is number {
  return typeof value === 'number' && value > 0 && value <= 86_400
}
