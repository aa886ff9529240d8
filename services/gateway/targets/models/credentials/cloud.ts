import { type Clock, readJsonObject, readUtf8 } from '@plat/core'
import type { Dialer, DialOptions, FetchOptions, Purpose } from '@plat/http'
import type { Log } from '@plat/process'

/** What the sources of cloud credentials work with. */
export interface CloudParts {
  /** docs/spec/gateway.md, `cloudCredentials`; the region is filled in from the environment. */
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

/** The same with the region of the environment where the configuration says none. */
export function regional(config: CloudConfig, env: NodeJS.ProcessEnv): CloudConfig {
  const region = config.aws.region || env.AWS_REGION || env.AWS_DEFAULT_REGION || ''
  return { ...config, aws: { ...config.aws, region } }
}

/** A credential, and until when it is one. */
export interface Lent<T> {
  readonly value: T
  /** Milliseconds since the epoch; null: as long as the process lives. */
  readonly expiresAt: number | null
}

/** Why there is no credential, in one line without a secret. */
export class CloudCredentialError extends Error {
  constructor(why: string) {
    super(why)
    this.name = 'CloudCredentialError'
  }
}

/** Deadline of one request for credentials: connection, head and body, in milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000
/** Largest answer, in bytes; the longest tokens are some 20 KiB. */
const MAX_ANSWER_BYTES = 64 * 1024
/** Largest file of a credential, in bytes. */
export const MAX_FILE_BYTES = 64 * 1024

/** A request for credentials. */
export interface CloudRequest extends Pick<FetchOptions, 'method' | 'headers' | 'body'>, DialOptions {
  /** Who is asked, for the fault. */
  readonly whom: string
  readonly url: string
  /** `metadata`: the service of the machine itself, at an address that nothing else may go to. */
  readonly purpose?: Extract<Purpose, 'cloud' | 'metadata'>
}

/**
 * The text of a response with status 200, in valid UTF-8. Throws `CloudCredentialError`, which repeats nothing of the body: a refusal may quote what
 * was sent.
 */
export async function answerOf(parts: Pick<CloudParts, 'dialer'>, request: CloudRequest): Promise<string> {
  const { whom, url, purpose = 'cloud', ...options } = request
  const limits = { maxBytes: MAX_ANSWER_BYTES, timeoutMs: REQUEST_TIMEOUT_MS }
  const { status, bytes } = await parts.dialer.fetchBytes(url, purpose, { ...options, ...limits }).catch((error) => {
    throw new CloudCredentialError(`${whom} cannot be asked: ${error instanceof Error ? error.message : 'no answer'}`)
  })
  if (status !== 200) throw new CloudCredentialError(`${whom} answered ${status}`)
  const text = readUtf8(bytes)
  if (text === null) throw new CloudCredentialError(`${whom} sent invalid UTF-8`)
  return text
}

/** The members of a JSON object. Throws `CloudCredentialError`. */
export function membersOf(text: string, whom: string): Readonly<Record<string, unknown>> {
  const members = readJsonObject(Buffer.from(text))
  if (members === null) throw new CloudCredentialError(`${whom} holds no JSON object`)
  return members
}

/** What a token may consist of to be a header. */
const TOKEN = /^[\x21-\x7e]+$/

/**
 * A token that lasts `expires_in` seconds (RFC 6749, section 5.1), which some clouds write as text; Azure's apps are told the end instead,
 * in seconds since the epoch. Throws `CloudCredentialError`.
 */
export function tokenOf(text: string, whom: string, clock: Clock): Lent<string> {
  const { access_token: token, expires_in: seconds, expires_on: end } = membersOf(text, whom)
  if (typeof token !== 'string' || !TOKEN.test(token)) throw new CloudCredentialError(`${whom} gave no access_token`)
  const lasts = seconds === undefined ? Number(end) - clock.now() / 1000 : Number(seconds)
  if (!(lasts > 0)) throw new CloudCredentialError(`${whom} did not say how long its token lasts`)
  return { value: token, expiresAt: clock.now() + lasts * 1000 }
}

/** `application/x-www-form-urlencoded` */
export function form(fields: Readonly<Record<string, string>>): Pick<FetchOptions, 'method' | 'headers' | 'body'> {
  const headers = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' }
  return { method: 'POST', headers, body: new URLSearchParams(fields).toString() }
}

/** A member that has to be text. Throws `CloudCredentialError`. */
export function textIn(members: Readonly<Record<string, unknown>>, name: string, whom: string): string {
  const value = members[name]
  if (typeof value !== 'string' || value === '') throw new CloudCredentialError(`${whom} has no ${name}`)
  return value
}
