import { type Clock, readJsonObject, readUtf8 } from '@plat/core'
import type { Dialer, DialOptions, FetchOptions, Purpose } from '@plat/http'
import type { Log } from '@plat/process'

/** Dependencies of the credential sources. */
export interface CloudParts {
  /** docs/spec/gateway.md, `cloudCredentials`, with the region from the environment as default. */
  readonly config: CloudConfig
  readonly env: NodeJS.ProcessEnv
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly log: Log
}

export interface CloudConfig {
  readonly aws: {
    readonly region: string
    readonly imds: boolean
    readonly partitionDNSSuffix: string
    readonly stsEndpoint: string
  }
  readonly azure: { readonly managedIdentity: boolean; readonly identityBinding: boolean }
  readonly gcp: { readonly metadataHost: string }
}

/** Fills in the region of the environment if none is configured. */
export function regional(config: CloudConfig, env: NodeJS.ProcessEnv): CloudConfig {
  const region = config.aws.region || env.AWS_REGION || env.AWS_DEFAULT_REGION || ''
  return { ...config, aws: { ...config.aws, region } }
}

/** A credential with its expiration. */
export interface Expiring<T> {
  readonly value: T
  /** Milliseconds since the epoch, or null for no expiration. */
  readonly expiresAt: number | null
}

/** Why there is no credential, in one line without secrets. */
export class CloudCredentialError extends Error {
  constructor(why: string) {
    super(why)
    this.name = 'CloudCredentialError'
  }
}

/** Deadline of one request, from connect to the end of the body, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000
/** Maximum response size, in bytes; the longest tokens have about 20 KiB. */
const MAX_RESPONSE_BYTES = 64 * 1024
/** Maximum size of a credential file, in bytes. */
export const MAX_FILE_BYTES = 64 * 1024

/** A request for a credential. */
export interface CloudRequest extends Pick<FetchOptions, 'method' | 'headers' | 'body'>, DialOptions {
  /** Name of the service, for error messages. */
  readonly service: string
  readonly url: string
  /** `metadata`: the machine's metadata service, at an address that is otherwise forbidden. */
  readonly purpose?: Extract<Purpose, 'cloud' | 'metadata'>
}

/**
 * Returns the text of a response with status 200, in valid UTF-8. Throws `CloudCredentialError`, which contains nothing of the body: it could
 * echo the request.
 */
export async function answerOf(parts: Pick<CloudParts, 'dialer'>, request: CloudRequest): Promise<string> {
  const { service, url, purpose = 'cloud', ...options } = request
  const limits = { maxBytes: MAX_RESPONSE_BYTES, timeoutMs: REQUEST_TIMEOUT_MS }
  const { status, bytes } = await parts.dialer.fetchBytes(url, purpose, { ...options, ...limits }).catch((error) => {
    throw new CloudCredentialError(
      `${service} is not reachable: ${error instanceof Error ? error.message : 'no response'}`,
    )
  })
  if (status !== 200) throw new CloudCredentialError(`${service} answered ${status}`)
  const text = readUtf8(bytes)
  if (text === null) throw new CloudCredentialError(`${service} sent invalid UTF-8`)
  return text
}

/** Parses a JSON object. Throws `CloudCredentialError`. */
export function membersOf(text: string, service: string): Readonly<Record<string, unknown>> {
  const members = readJsonObject(Buffer.from(text))
  if (members === null) throw new CloudCredentialError(`${service} holds no JSON object`)
  return members
}

/** Characters of a token allowed in a header. */
const TOKEN = /^[\x21-\x7e]+$/

/**
 * Parses a token with `expires_in` in seconds (RFC 6749, section 5.1), which some clouds send as string; Azure's app endpoint sends the
 * expiration time, in seconds since the epoch. Throws `CloudCredentialError`.
 */
export function tokenOf(text: string, service: string, clock: Clock): Expiring<string> {
  const { access_token: token, expires_in: seconds, expires_on: end } = membersOf(text, service)
  if (typeof token !== 'string' || !TOKEN.test(token))
    throw new CloudCredentialError(`${service} returned no access_token`)
  const lasts = seconds === undefined ? Number(end) - clock.now() / 1000 : Number(seconds)
  if (!(lasts > 0)) throw new CloudCredentialError(`${service} returned no lifetime of its token`)
  return { value: token, expiresAt: clock.now() + lasts * 1000 }
}

/** `application/x-www-form-urlencoded` */
export function form(fields: Readonly<Record<string, string>>): Pick<FetchOptions, 'method' | 'headers' | 'body'> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  return { method: 'POST', headers, body: new URLSearchParams(fields).toString() }
}

/** Returns a non-empty string member. Throws `CloudCredentialError`. */
export function textIn(members: Readonly<Record<string, unknown>>, name: string, service: string): string {
  const value = members[name]
  if (typeof value !== 'string' || value === '') throw new CloudCredentialError(`${service} has no ${name}`)
  return value
}
