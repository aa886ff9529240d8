import { readText } from '@plat/config'
import { isObject, readJsonObject } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import { CodedRefusalError } from '@plat/http/endpoints'
import type { Log } from '@plat/process'
import type { Members } from '@plat/tokens'
import type { Result } from '../release/release.ts'

/** Deadline of one request to the broker, which may fetch keys of a cloud, in milliseconds. */
const TIMEOUT_MS = 15_000
/** Largest answer, in bytes: a token has 16 KiB at most. */
const MAX_RESPONSE_BYTES = 64 * 1024
const MAX_CA_BYTES = 1024 * 1024

/**
 * The broker's error for an unknown nonce. It is not a verdict on the evidence: a restarted broker has forgotten its nonces, and the workload can
 * request a new one.
 */
const NONCE_PROBLEM = /^proof failed: its nonce is /

export interface BrokerOptions {
  /** Without a slash at the end. */
  readonly url: string
  /** Path of a CA file; empty: the system's roots. */
  readonly caFile: string
  readonly token: string
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly log: Log
}

/** A nonce bound to a key: `boundNonce(salt, jkt)`. */
export interface BoundNonce {
  readonly nonce: string
  readonly salt: string
  /** RFC 3339. */
  readonly expiresAt: string
}

export interface Minted {
  readonly token: string
  readonly jti: string
  readonly spiffeId: string
  /** RFC 3339. */
  readonly expiresAt: string
  readonly result: Result
}

/** Verdict of the broker on a token: its claims, or why it is refused. */
export type Verdict = { readonly claims: Members } | { readonly error: string }

/**
 * The identity broker, which verifies evidence and mints tokens (docs/spec/broker-api.md). Each method throws the refusal for the workload; a
 * problem between the two services is 503 and logged.
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

  /** `POST /v1/token`: verifies the evidence and mints a token for it. */
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
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs: TIMEOUT_MS,
        ...(await this.#trust()),
      })
      const body = readJsonObject(bytes)
      if (body !== null) return { status, body }
      log.error({ path, status }, 'the broker sent no JSON object')
    } catch (error) {
      log.error({ path, error: dialFault(error) }, 'the broker could not be reached')
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

  /** Includes 401: a wrong broker token between the services is not the workload's fault. */
  #strange(status: number, path: string): CodedRefusalError {
    this.#options.log.error({ path, status }, 'the broker sent an unexpected response')
    return unavailable()
  }
}

function unavailable(): CodedRefusalError {
  return new CodedRefusalError(503, 'unavailable', 'the identity broker cannot answer: try again', {
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
