import { readText } from '@plat/config'
import { readJsonObject } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import { CodedRefusalError } from '@plat/http/endpoints'
import type { Log } from '@plat/process'
import { isObject, type Members } from '@plat/tokens'
import type { Result } from '../release/release.ts'

/** Deadline of one request to the broker, which may ask a cloud for its keys, in milliseconds. */
const TIMEOUT_MS = 15_000
/** Largest answer, in bytes: a token has 16 KiB at most. */
const MAX_ANSWER_BYTES = 64 * 1024
const MAX_CA_BYTES = 1024 * 1024

/**
 * How the broker names a nonce that it does not know. That is no verdict over the evidence: a broker that was restarted has forgotten the nonces
 * that it gave out, and the workload can ask for a new one.
 */
const NONCE_PROBLEM = /^proof failed: its nonce is /

export interface BrokerOptions {
  /** Without a slash at the end. */
  readonly url: string
  /** Path; empty: the authorities of the system. */
  readonly caFile: string
  readonly token: string
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly log: Log
}

/** A nonce that is bound to a key; `boundNonce(salt, jkt)` is the nonce. */
export interface BoundNonce {
  readonly nonce: string
  readonly salt: string
  /** RFC 3339. */
  readonly expiresAt: string
}

/** A token that the broker minted for evidence. */
export interface Minted {
  readonly token: string
  readonly jti: string
  readonly spiffeId: string
  /** RFC 3339. */
  readonly expiresAt: string
  readonly result: Result
}

/** What the broker says of a token: its claims, or why it does not count. */
export type Verdict = { readonly claims: Members } | { readonly error: string }

/**
 * The identity broker: the verifier of evidence and the one that makes tokens (docs/spec/broker-api.md). Each question throws the refusal that the workload
 * is to hear; what is wrong between the two services is 503, and stands in the log.
 */
export class Broker {
  readonly #options: BrokerOptions

  constructor(options: BrokerOptions) {
    this.#options = options
  }

  /** `POST /v1/proof/nonce`. */
  async nonce(check: string, jkt: string): Promise<BoundNonce> {
    const { status, body } = await this.#ask('/v1/proof/nonce', { check, dpopJkt: jkt })
    if (status === 400) throw new CodedRefusalError(400, 'invalid_request', `check ${check}: ${errorIn(body)}`)
    const { nonce, salt, expiresAt } = body
    if (status === 200 && isText(nonce) && isText(salt) && isText(expiresAt)) return { nonce, salt, expiresAt }
    throw this.#strange(status, '/v1/proof/nonce')
  }

  /** `POST /v1/token`: the evidence is verified, and a token minted for it. */
  async mint(request: Members): Promise<Minted> {
    const { status, body } = await this.#ask('/v1/token', request)
    if (status === 400) throw new CodedRefusalError(400, 'invalid_request', errorIn(body))
    if (status === 403 && NONCE_PROBLEM.test(errorIn(body)))
      throw new CodedRefusalError(403, 'invalid_nonce', errorIn(body))
    if (status === 403) throw new CodedRefusalError(403, 'evidence_refused', errorIn(body))
    const { token, jti, spiffeId, expiresAt, substrate } = body
    if (status === 200 && isText(token) && isText(jti) && isText(spiffeId) && isText(expiresAt)) {
      return { token, jti, spiffeId, expiresAt, result: resultIn(substrate) }
    }
    throw this.#strange(status, '/v1/token')
  }

  /** `POST /v1/token/verify`. */
  async verify(token: string): Promise<Verdict> {
    const { status, body } = await this.#ask('/v1/token/verify', { token })
    if (status === 200 && body.valid === true && isObject(body.claims)) return { claims: body.claims }
    if (status === 200 && body.valid === false) return { error: errorIn(body) }
    throw this.#strange(status, '/v1/token/verify')
  }

  async #ask(path: string, request: Members): Promise<{ readonly status: number; readonly body: Members }> {
    const { url, token, dialer, log } = this.#options
    try {
      const { status, bytes } = await dialer.fetchBytes(url + path, 'jwks', {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(request),
        maxBytes: MAX_ANSWER_BYTES,
        timeoutMs: TIMEOUT_MS,
        ...(await this.#trust()),
      })
      const body = readJsonObject(bytes)
      if (body !== null) return { status, body }
      log.error({ path, status }, 'the broker sent no JSON object')
    } catch (error) {
      log.error({ path, error: dialFault(error) }, 'the broker was not reached')
    }
    throw unavailable()
  }

  async #trust(): Promise<{ caPEM?: string }> {
    const { caFile, log } = this.#options
    if (caFile === '') return {}
    const caPEM = await readText(caFile, MAX_CA_BYTES)
    if (caPEM !== null) return { caPEM }
    log.error({ caFile }, '-broker-ca-file cannot be read')
    throw unavailable()
  }

  /** Also its 401: that the two services do not agree on the broker token is not the workload's fault. */
  #strange(status: number, path: string): CodedRefusalError {
    this.#options.log.error({ path, status }, 'the broker gave no answer that helps')
    return unavailable()
  }
}

function unavailable(): CodedRefusalError {
  return new CodedRefusalError(503, 'unavailable', 'the identity broker cannot answer: ask again', {
    'retry-after': '5',
  })
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function errorIn({ error }: Members): string {
  return isText(error) ? error : 'the broker gave no reason'
}

function resultIn(substrate: unknown): Result {
  const texts = isObject(substrate) ? Object.entries(substrate) : []
  return Object.fromEntries(texts.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])))
}
