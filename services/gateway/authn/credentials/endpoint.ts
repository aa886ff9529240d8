import { readJsonObject } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import type { Credential } from '../../call/index.ts'
import { bearer, type OAuthClient } from './secret.ts'

/** Timeout of one request to a token endpoint (connect, headers and body), in milliseconds. */
const REQUEST_TIMEOUT_MS = 10_000
/** Maximum response of a token endpoint, in bytes. */
const MAX_RESPONSE_BYTES = 64 * 1024
/** Error codes of RFC 6749 and related standards. Other texts of a server are never repeated. */
const ERROR_CODE = /^[a-z_]{1,64}$/

export interface TokenRequest {
  readonly url: string
  readonly form: URLSearchParams
  /** Client for HTTP Basic (RFC 6749, section 2.3.1); null: the form contains everything. */
  readonly client: OAuthClient | null
  /** CA certificates trusted in addition to the system's; null: none. */
  readonly caPEM: string | null
}

/** A token with its credential. */
export interface Grant {
  readonly credential: Credential
  /** Lifetime from before the request; null: unknown. */
  readonly expiresInSeconds: number | null
}

/** Requests a token. Returns a text with the problem on failure, without secrets, tokens or free text of the endpoint. */
export async function askToken(dialer: Pick<Dialer, 'fetchBytes'>, request: TokenRequest): Promise<Grant | string> {
  try {
    const { status, bytes } = await dialer.fetchBytes(request.url, 'jwks', {
      maxBytes: MAX_RESPONSE_BYTES,
      timeoutMs: REQUEST_TIMEOUT_MS,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        'user-agent': 'plat-gateway',
        ...(request.client !== null && { authorization: basic(request.client) }),
      },
      method: 'POST',
      body: request.form.toString(),
      ...(request.caPEM !== null && { caPEM: request.caPEM }),
    })
    const answer = readJsonObject(bytes) ?? {}
    return status === 200 ? grantOf(answer) : refusalOf(status, answer)
  } catch (error) {
    return `the token endpoint gave no answer (${dialFault(error)})`
  }
}

function basic({ id, secret }: OAuthClient): string {
  return `Basic ${Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64')}`
}

/** Encodes one value as `application/x-www-form-urlencoded`. */
function formEncoded(text: string): string {
  return new URLSearchParams({ x: text }).toString().slice('x='.length)
}

function grantOf(answer: Readonly<Record<string, unknown>>): Grant | string {
  const { access_token: token, token_type: type, expires_in: seconds } = answer
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') return 'the token endpoint gave no bearer token'
  const credential = typeof token === 'string' ? bearer(token) : null
  if (credential === null) return 'the token endpoint gave a token that no header can carry'
  if (seconds === undefined) return { credential, expiresInSeconds: null }
  if (typeof seconds !== 'number') return 'the token endpoint gave an expires_in that is not a number'
  if (!(seconds > 0)) return 'the token endpoint gave a token that has expired'
  return { credential, expiresInSeconds: seconds }
}

function refusalOf(status: number, { error }: Readonly<Record<string, unknown>>): string {
  const code = typeof error === 'string' && ERROR_CODE.test(error) ? `: ${error}` : ''
  return `the token endpoint answered ${status}${code}`
}
