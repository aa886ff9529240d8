import { type Clock, readJsonObject, readUtf8 } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import type { Federation } from '../../federation/federation.ts'
import type { Credential, ProviderFailure } from '../provider.ts'

/** Deadline of one request to a cloud: connection, head and body, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000
/** Largest answer of a cloud, in bytes; the longest tokens are some 20 KiB. */
const MAX_RESPONSE_BYTES = 64 * 1024
/** How often a request is sent when the cloud says that it may work a moment later. */
const MAX_TRIES = 3
/** Pause before the next try, in milliseconds. */
const RETRY_AFTER_MS = 1_000

/** Dependencies of every provider. */
export interface CloudParts {
  /** Signs the assertions, with a key that clouds find in the discovery document. */
  readonly federation: Federation
  readonly dialer: Dialer
  readonly clock: Clock
}

/** One POST to a cloud. */
export interface CloudRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A body with status 200, at most 64 KiB. */
export interface CloudResponse {
  readonly kind: 'answer'
  readonly text: string
}

/** `again`: the cloud's own code says that the same request may work a moment later. */
export interface CloudFailure extends ProviderFailure {
  readonly again?: boolean
}

/** How a cloud reports errors. */
export interface ErrorReader {
  /** Returns the cloud's error code in the body of a refusal; null without one. */
  code(text: string): string | null
  /** Codes after which the same request may work a moment later. */
  readonly passing: readonly string[]
}

/**
 * Sends one request with a deadline and a size limit; does not follow redirects. A failure contains the status and the cloud's error code, never the
 * body, which may repeat the assertion.
 */
export async function post(
  { dialer }: CloudParts,
  { url, headers, body }: CloudRequest,
  errors: ErrorReader,
): Promise<CloudResponse | CloudFailure> {
  try {
    const limits = { maxBytes: MAX_RESPONSE_BYTES, timeoutMs: REQUEST_TIMEOUT_MS }
    const { status, bytes } = await dialer.fetchBytes(url, 'cloud', { ...limits, method: 'POST', headers, body })
    const text = readUtf8(bytes)
    if (status === 200) return text === null ? malformed('invalid UTF-8') : { kind: 'answer', text }
    const code = text === null ? null : errors.code(text)
    if (code === null || !CODE.test(code)) return { kind: 'failed', reason: `status ${status}` }
    return { kind: 'failed', reason: `status ${status}, ${code}`, again: errors.passing.includes(code) }
  } catch (error) {
    return { kind: 'failed', reason: `not reached: ${dialFault(error)}` }
  }
}

/** Form of a cloud's error code, so that a log line contains nothing else. */
const CODE = /^[A-Za-z0-9_.-]{1,64}$/

/** A form as `post` sends it. */
export function form(url: string, fields: Readonly<Record<string, string>>): CloudRequest {
  return {
    url,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(fields).toString(),
  }
}

/** Tries again, a bounded number of times, while the cloud says that a moment may help. */
export async function withRetries(
  { clock }: CloudParts,
  attempt: () => Promise<Credential | CloudFailure>,
): Promise<Credential | CloudFailure> {
  for (let tries = 1; ; tries++) {
    const result = await attempt()
    if (result.kind === 'credential' || result.again !== true || tries === MAX_TRIES) return result
    await new Promise<void>((resolve) => clock.after(RETRY_AFTER_MS, resolve))
  }
}

/** The members of a JSON object, read strictly; null for anything else. */
export function jsonMembers(text: string): Readonly<Record<string, unknown>> | null {
  return readJsonObject(Buffer.from(text))
}

/** A status 200 whose body is not what the cloud documents. */
export function malformed(what: string): ProviderFailure {
  return { kind: 'failed', reason: `status 200, but ${what}` }
}

/** Is the value a secret as clouds write them: visible ASCII, not empty? */
export function isSecret(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)
}

/** The answer of an OAuth token endpoint (RFC 6749, section 5.1): a bearer token and its life in whole seconds. */
export function bearerToken(text: string): Credential | ProviderFailure {
  const members = jsonMembers(text)
  if (members === null) return malformed('no JSON object')
  const { access_token: accessToken, token_type: type, expires_in: seconds } = members
  if (!isSecret(accessToken)) return malformed('no access_token')
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') return malformed('token_type is not Bearer')
  if (typeof seconds !== 'number' || !Number.isSafeInteger(seconds) || seconds <= 0) return malformed('no expires_in')
  return { kind: 'credential', accessToken, expiresInSeconds: seconds }
}

/** Whole seconds from now until `endsAt` (Unix milliseconds) in a credential; a failure when it has ended already. */
export function credentialUntil(
  { clock }: Pick<CloudParts, 'clock'>,
  accessToken: string,
  endsAt: number,
): Credential | ProviderFailure {
  const expiresInSeconds = Math.floor((endsAt - clock.now()) / 1000)
  if (!(expiresInSeconds > 0)) return malformed('the credential has ended already')
  return { kind: 'credential', accessToken, expiresInSeconds }
}
