import { readText } from '@plat/config'
import type { Clock } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import type { NotifierConfig } from '../config.ts'
import type { Sent } from '../delivery/courier.ts'
import type { Notice } from '../notice.ts'

/** Deadline of one delivery: connection, head and body, in milliseconds. */
const SEND_TIMEOUT_MS = 10_000
/** Largest answer that is read, in bytes. */
const ANSWER_MAX_BYTES = 64 * 1024
/** Largest file with a secret or an address, in bytes. */
const SECRET_MAX_BYTES = 64 * 1024

/** What is sent. */
export interface Message {
  readonly url: string
  readonly method?: 'POST' | 'PUT'
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

export interface TargetParts {
  readonly config: NotifierConfig
  /** Where the configuration has it: `notifiers[0]`. */
  readonly field: string
  /** `consoleURL`; empty: no links. */
  readonly consoleURL: string
  readonly clock: Clock
}

/** How one type of notifier is told. Files with secrets are read for each message, so that a new one counts at once. */
export interface Target {
  /** Throws `SecretError`. */
  message(notice: Notice): Promise<Message>
}

/** A file cannot be used; the message names its field and nothing of what is in it. */
export class SecretError extends Error {}

/** The text of a file with a secret, without the white space around it. Throws `SecretError`. */
export async function secretIn(field: string, path: string): Promise<string> {
  const text = (await readText(path, SECRET_MAX_BYTES))?.trim() ?? ''
  if (text === '') throw new SecretError(`${field} is missing, empty or unreadable`)
  return text
}

/** An address that is a secret, as incoming webhooks have it. Throws `SecretError`. */
export async function addressIn(field: string, path: string): Promise<string> {
  const text = await secretIn(field, path)
  const url = URL.parse(text)
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new SecretError(`${field} holds no http or https URL`)
  }
  return text
}

/** Where the console shows what a notice is about; null: there is no console. */
export function linkOf({ approval }: Notice, consoleURL: string): string | null {
  if (consoleURL === '') return null
  return approval === null ? consoleURL : `${consoleURL.replace(/\/$/, '')}/approvals/${encodeURIComponent(approval)}`
}

/** The way out. */
export interface Outside {
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  /** CA bundle beside the system's; null: none. */
  readonly extraCA: string | null
  readonly clock: Clock
}

/** Sends a message once to a receiver in `jurisdiction` (empty: not known). Never rejects; what a receiver says freely is not repeated. */
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
