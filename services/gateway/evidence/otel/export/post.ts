import { headerLines, readText } from '@plat/config'
import { member, readJsonObject, withoutTrailing } from '@plat/core'
import { type Dialer, type DialFault, dialFault, type Fetched, type FetchOptions } from '@plat/http'
import { jurisdictionOf } from '@plat/resources/regions'
import type { OtelConfig } from '../config.ts'

/** Maximum response size, in bytes. */
const MAX_RESPONSE_BYTES = 64 * 1024
/** Maximum size of a headers or CA file, in bytes. */
const MAX_FILE_BYTES = 1024 * 1024
/** Caps Retry-After, in seconds. */
const MAX_RETRY_AFTER_SECONDS = 300

/** Retryable status codes (OTLP/HTTP, "Failures"). */
const AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** Forbidden destinations: not retryable. */
const FORBIDDEN: ReadonlySet<DialFault> = new Set<DialFault>(['blocked', 'residency'])

/** Result of a request. `away`: retryable. Reasons contain nothing of headers or spans. */
export type Posted =
  | { readonly kind: 'taken'; readonly rejected: number }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'away'; readonly reason: string; readonly retryAfterMs: number }

export type CollectorConfig = Pick<
  OtelConfig,
  'endpoint' | 'jurisdiction' | 'headersFile' | 'caFile' | 'exportTimeoutSeconds'
>

/** A trace collector for OTLP over HTTP. */
export class Collector {
  readonly #config: CollectorConfig
  readonly #dialer: Pick<Dialer, 'fetchBytes'>
  readonly #url: URL

  constructor(config: CollectorConfig, dialer: Pick<Dialer, 'fetchBytes'>) {
    this.#config = config
    this.#dialer = dialer
    this.#url = tracesURL(config.endpoint)
  }

  /** Never rejects. Reads the files each time, so that replaced ones apply. */
  async post(body: string, signal: NonNullable<FetchOptions['signal']>): Promise<Posted> {
    try {
      const headers = { ...(await this.#headers()), 'content-type': 'application/json' }
      const { endpoint: upstream, jurisdiction: stated } = this.#config
      const jurisdiction = jurisdictionOf({ upstream, jurisdiction: stated }, null) ?? ''
      const timeoutMs = this.#config.exportTimeoutSeconds * 1000
      const options = {
        method: 'POST',
        headers,
        body,
        maxBytes: MAX_RESPONSE_BYTES,
        timeoutMs,
        signal,
        jurisdiction,
      } as const
      return judged(await this.#dialer.fetchBytes(this.#url, 'otlp', { ...options, ...(await this.#trust()) }))
    } catch (error) {
      if (error instanceof FileError) return { kind: 'away', reason: error.message, retryAfterMs: 0 }
      const fault = dialFault(error)
      const reason = `no response from the collector (${fault})`
      return FORBIDDEN.has(fault) ? { kind: 'refused', reason } : { kind: 'away', reason, retryAfterMs: 0 }
    }
  }

  async #headers(): Promise<Readonly<Record<string, string>>> {
    const { headersFile } = this.#config
    if (headersFile === '') return {}
    const headers = headerLines(await contentOf('headersFile', headersFile))
    if (typeof headers === 'object') return headers
    throw new FileError(`otel.headersFile: line ${headers} of ${headersFile} is not an allowed "Name: value"`)
  }

  async #trust(): Promise<{ caPEM?: string }> {
    const { caFile } = this.#config
    return caFile === '' ? {} : { caPEM: await contentOf('caFile', caFile) }
  }
}

/** `/v1/traces` below the base. Throws for an invalid URL. */
export function tracesURL(endpoint: string): URL {
  const url = new URL(endpoint)
  url.pathname = `${withoutTrailing(url.pathname, '/')}/v1/traces`
  return url
}

/** A configured file cannot be used. */
class FileError extends Error {}

async function contentOf(key: string, path: string): Promise<string> {
  const text = await readText(path, MAX_FILE_BYTES)
  if (text !== null) return text
  throw new FileError(`otel.${key}: ${path} is missing, unreadable or larger than ${MAX_FILE_BYTES} bytes`)
}

function judged({ status, headers, bytes }: Fetched): Posted {
  if (status >= 200 && status < 300) return acceptedBy(headers['content-type'], bytes)
  const reason = `the collector responded ${status}`
  if (!AGAIN.has(status)) return { kind: 'refused', reason }
  return { kind: 'away', reason, retryAfterMs: retryAfterMs(headers['retry-after']) }
}

/** Number of rejected spans (OTLP/HTTP, "Partial Success"); 0 for an empty body or another encoding. */
function acceptedBy(type: string | undefined, bytes: Uint8Array): Posted {
  if (bytes.length === 0 || !/^application\/json\b/i.test(type ?? '')) return { kind: 'taken', rejected: 0 }
  const members = readJsonObject(bytes)
  if (members === null) return { kind: 'refused', reason: 'the collector sent no JSON object' }
  const rejected = Number(member(members.partialSuccess, 'rejectedSpans') ?? 0)
  return { kind: 'taken', rejected: Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0 }
}

/** RFC 9110, section 10.2.3; dates are ignored. */
function retryAfterMs(text: string | undefined): number {
  return text !== undefined && /^\d{1,9}$/.test(text) ? Math.min(Number(text), MAX_RETRY_AFTER_SECONDS) * 1000 : 0
}
