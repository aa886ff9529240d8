import type { IncomingHttpHeaders } from 'node:http'
import { type Clock, JsonError, MESSAGE_LIMITS, parseChecked, parseStrict } from '@plat/core'
import { type BodyFault, collectBody } from '@plat/http'
import { OVERLOAD_RETRY_MS } from '@plat/process'
import { type Denial, deny, type RequestContext } from '../../call/index.ts'

/** Returns a header that must occur at most once. Node joins repeated headers with `, `, which is then no valid value. */
export function header(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  return typeof value === 'string' ? value.trim() : null
}

export function copyHeader(from: IncomingHttpHeaders, to: Record<string, string>, name: string): void {
  const value = header(from, name)
  if (value !== null) to[name] = value
}

export function isJsonType(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']
  return type === 'application/json' || /^application\/json(?:\s*;|$)/i.test(type ?? '')
}

export function isStreamType(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']
  return type === 'text/event-stream' || /^text\/event-stream(?:\s*;|$)/i.test(type ?? '')
}

export function hasLengthUpTo(headers: IncomingHttpHeaders, bytes: number): boolean {
  const length = headers['content-length']
  return length !== undefined && Number(length) <= bytes
}

/** Headers of every event stream: it must not be cached or buffered by proxies. */
export const STREAM_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}

export interface BodyLimits {
  readonly clock: Clock
  /** docs/spec/gateway.md: `maxBodyBytes`. */
  readonly maxBodyBytes: number
  /** docs/spec/gateway.md: `bodyReadTimeoutSeconds`, in milliseconds. */
  readonly bodyReadTimeoutMs: number
}

/** Reads a body with a JSON content type and returns the result of `use` for its bytes, or a denial. Does not parse the JSON. */
export function useJsonBytes<T>(
  arrival: RequestContext,
  limits: BodyLimits,
  use: (bytes: Uint8Array) => T | Promise<T>,
): Denial | Promise<T | Denial> {
  const { wire } = arrival
  if (!isJsonType(wire.headers)) return deny('unsupported_media_type', 'Content-Type must be application/json')
  const options = {
    maxBytes: limits.maxBodyBytes,
    timeoutMs: limits.bodyReadTimeoutMs,
    clock: limits.clock,
    headers: wire.headers,
    account: arrival,
  }
  // One promise for both steps: `use` runs as soon as the body is complete.
  return new Promise((resolve, reject) => {
    collectBody(wire.body, options, (read) => {
      try {
        resolve(read instanceof Uint8Array ? use(read) : bodyDenial(read, limits))
      } catch (error) {
        reject(error)
      }
    })
  })
}

function bodyDenial(fault: BodyFault, limits: BodyLimits): Denial {
  switch (fault.why) {
    case 'too_large':
      return deny('body_too_large', `the body is larger than ${limits.maxBodyBytes} bytes`)
    case 'chunks':
      return deny('invalid_request', 'the body comes in too many small chunks')
    case 'memory':
      return deny('overloaded', 'calls of this agent, or all calls, hold too many bytes in memory; call again', {
        retryAfterMs: OVERLOAD_RETRY_MS,
      })
    case 'encoding':
      return deny('unsupported_media_type', 'Content-Encoding must be identity')
    case 'timeout':
      return deny('request_timeout', `the body did not arrive within ${limits.bodyReadTimeoutMs} ms`)
    case 'aborted':
      return deny('invalid_request', 'the body ended too early')
  }
}

/** Parses JSON that was checked; returns undefined when it is invalid. */
export function parsedOrUndefined(json: Uint8Array): unknown {
  try {
    return parseChecked(textOf(json))
  } catch {
    return undefined
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** JSON-RPC "parse error". */
const PARSE_ERROR = -32700

/** Parses a message strictly. Returns a denial for invalid JSON and for JSON that parsers read differently, such as repeated members. */
export function strictMessage(bytes: Uint8Array): { readonly value: unknown } | Denial {
  try {
    return { value: parseStrict(bytes, MESSAGE_LIMITS) }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return deny('invalid_request', `the body is not strict JSON: ${error.message}`, { data: { rpc: PARSE_ERROR } })
  }
}
