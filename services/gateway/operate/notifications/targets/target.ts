import { readText } from '@plat/config'
import type { Clock } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import type { NotifierConfig } from '../config.ts'
import type { Sent } from '../delivery/courier.ts'
import type { Notice } from '../notice.ts'

/** Deadline of one delivery, from connect to the end of the body, in milliseconds. */
const SEND_TIMEOUT_MS = 10_000
/** Maximum size of a response body, in bytes. */
const ANSWER_MAX_BYTES = 64 * 1024
/** Maximum size of a file with a secret or URL, in bytes. */
const SECRET_MAX_BYTES = 64 * 1024

/** An HTTP request to a receiver. */
export interface Message {
  readonly url: string
  readonly method?: 'POST' | 'PUT'
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

export interface TargetParts {
  readonly config: NotifierConfig
  /** Path of the entry in the configuration: `notifiers[0]`. */
  readonly field: string
  /** `consoleURL`; no links if empty. */
  readonly consoleURL: string
  readonly clock: Clock
}

/** Formats messages for one type of notifier. Files with secrets are read for each message, so that a new secret applies at once. */
export interface Target {
  /** Throws `SecretError`. */
  message(notice: Notice): Promise<Message>
}

/** A file cannot be used; the message names its field and nothing of its content. */
export class SecretError extends Error {}

/** Returns the trimmed text of a secret file. Throws `SecretError`. */
export async function secretIn(field: string, path: string): Promise<string> {
  const text = (await readText(path, SECRET_MAX_BYTES))?.trim() ?? ''
  if (text === '') throw new SecretError(`${field} is missing, empty or unreadable`)
  return text
}

/** Returns a secret URL, as for incoming webhooks. Throws `SecretError`. */
export async function addressIn(field: string, path: string): Promise<string> {
  const text = await secretIn(field, path)
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new SecretError(`${field} holds no http or https URL`)
  }
  return text
}

/** Link to the subject of a notice in the console, or null without a console. */
export function linkOf({ approval }: Notice, consoleURL: string): string | null {
  if (consoleURL === '') return null
  return approval === null ? consoleURL : `${consoleURL.replace(/\/$/, '')}/approvals/${encodeURIComponent(approval)}`
}

/** Settings for outgoing connections. */
export interface Outside {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  /** Additional CA bundle in PEM, or null. */
  readonly extraCA: string | null
  readonly clock: Clock
}

/** Sends a message once to a receiver in `jurisdiction` (empty if unknown). Never rejects; never repeats free text of the receiver. */
export async function sendOnce(
  message: () => Promise<Message>,
  { jurisdiction }: Pick<NotifierConfig, 'jurisdiction'>,
  { dialer, extraCA, clock }: Outside,
): Promise<Sent> {
  try {
    const { url, method = 'POST', headers, body } = await message()
    const answer = await dialer.fetchBytes(url, 'notify', {
      method,
      headers: { 'content-type': 'application/json', 'user-agent': 'plat-gateway', ...headers },
      body,
      maxBytes: ANSWER_MAX_BYTES,
      timeoutMs: SEND_TIMEOUT_MS,
      jurisdiction,
      ...(extraCA !== null && { caPEM: extraCA }),
    })
    const { status } = answer
    if (status >= 200 && status < 300) return 'sent'
    const why = `the receiver answered ${status}`
    const isBusy = status === 408 || status === 425 || status === 429 || status >= 500
    return { kind: isBusy ? 'away' : 'refused', why, retryAfterMs: retryAfter(answer.headers['retry-after'], clock) }
  } catch (error) {
    const why = error instanceof SecretError ? error.message : `the receiver gave no answer (${dialFault(error)})`
    return { kind: 'away', why, retryAfterMs: null }
  }
}

/** RFC 9110, section 10.2.3: seconds or a date. */
function retryAfter(header: string | undefined, clock: Clock): number | null {
  if (header === undefined) return null
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - clock.now()
  return Number.isFinite(ms) && ms > 0 ? ms : null
}
