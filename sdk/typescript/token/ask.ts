import { readBody, readJsonObject } from '@plat/core'
import { waitingClock } from '../clock.ts'
import { retryAfterIn } from '../denied/retry-after.ts'
import { PlatError } from '../error.ts'
import { TokenUnavailableError } from './source.ts'

/** Timeout of the broker, in milliseconds; the time of a requested long poll is added. */
const ANSWER_MS = 30_000

/** Largest response of the broker, in bytes. */
const MAX_RESPONSE_BYTES = 64 * 1024

/** Statuses that may succeed on retry. */
const PASSING: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])

export type Members = Readonly<Record<string, unknown>>

/**
 * The identity broker refused.
 *
 * @example
 * if (error instanceof IdentityRefusedError && error.code === 'invalid_target') console.error('no such audience')
 */
export class IdentityRefusedError extends PlatError {
  override readonly name = 'IdentityRefusedError'
  readonly status: number
  /** Error code of the broker: `invalid_grant`, `invalid_target`, `session_revoked`, …; for a mint the error text. */
  readonly code: string
  readonly retryAfterMs: number | null

  constructor(options: {
    readonly status: number
    readonly code: string
    readonly description: string | null
    readonly retryAfterMs: number | null
  }) {
    const { status, code, description } = options
    super(`the identity broker refused: ${code}${description === null ? '' : `: ${description}`}`)
    this.status = status
    this.code = code
    this.retryAfterMs = options.retryAfterMs
  }
}

export interface BrokerConnection {
  readonly fetch: typeof globalThis.fetch
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON, parameters as a form. */
  readonly body?: object | URLSearchParams
  readonly signal?: AbortSignal | null
  /** In addition to the timeout of every request, in milliseconds. */
  readonly waitMs?: number
}

/**
 * One POST to the broker.
 * @throws IdentityRefusedError if it refuses, TokenUnavailableError if it does not respond.
 */
export async function ask({ fetch, url, headers = {}, body, signal, waitMs = 0 }: BrokerConnection): Promise<Members> {
  const isForm = body instanceof URLSearchParams
  const late = AbortSignal.timeout(ANSWER_MS + waitMs)
  const init: RequestInit = {
    method: 'POST',
    redirect: 'error',
    headers: { ...(body !== undefined && !isForm && { 'content-type': 'application/json' }), ...headers },
    body: body === undefined ? null : isForm ? body : JSON.stringify(body),
    signal: signal ? AbortSignal.any([signal, late]) : late,
  }
  const lost = (error: unknown): never => {
    signal?.throwIfAborted()
    const { origin } = new URL(url)
    throw new TokenUnavailableError(`the identity broker at ${origin} does not respond`, {
      retryable: true,
      cause: error,
    })
  }
  const response = await fetch(url, init).catch(lost)
  // A refusal is known by its status; what a cut success contained is lost.
  const bytes = await readBody(response.body, MAX_RESPONSE_BYTES).catch((error) => (response.ok ? lost(error) : null))
  const answer = bytes === null ? null : readJsonObject(bytes)
  if (response.ok && answer !== null) return answer
  throw refusal(response, answer ?? {})
}

function refusal(
  { status, headers }: Response,
  { error, error_description: description }: Members,
): IdentityRefusedError {
  return new IdentityRefusedError({
    status,
    code: typeof error === 'string' ? error : `HTTP ${status}`,
    description: typeof description === 'string' ? description : null,
    retryAfterMs: retryAfterIn((name) => headers.get(name), waitingClock.now()),
  })
}

/** The same error as an error of a source; its status determines whether a retry may help. */
export function asUnavailable(error: unknown): TokenUnavailableError {
  if (error instanceof TokenUnavailableError) return error
  if (error instanceof IdentityRefusedError) {
    const { message, status, retryAfterMs } = error
    return new TokenUnavailableError(message, { retryable: PASSING.has(status), retryAfterMs, cause: error })
  }
  if (error instanceof PlatError) return new TokenUnavailableError(error.message, { cause: error })
  return new TokenUnavailableError('the source of tokens failed', { retryable: true, cause: error })
}

/** Returns a required text member. */
export function textIn(answer: Members, name: string): string {
  const value = answer[name]
  if (typeof value !== 'string' || value === '')
    throw new TokenUnavailableError(`the response of the identity broker has no ${name}`)
  return value
}
