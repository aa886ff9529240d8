import type { IncomingHttpHeaders } from 'node:http'

/** Returns a header that must occur at most once. Node joins repeated headers with `, `, which is then no valid value. */
export function header(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  return typeof value === 'string' ? value.trim() : null
}

/** Copies a header, if present. */
export function copyHeader(from: IncomingHttpHeaders, to: Record<string, string>, name: string): void {
  const value = header(from, name)
  if (value !== null) to[name] = value
}

/** Returns true if the content type is JSON. */
export function isJsonType(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']
  return type === 'application/json' || /^application\/json(?:\s*;|$)/i.test(type ?? '')
}

/** Returns true if the content type is an event stream. */
export function isStreamType(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']
  return type === 'text/event-stream' || /^text\/event-stream(?:\s*;|$)/i.test(type ?? '')
}

/** Returns true if the content length is at most `bytes`. */
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
