import type { IncomingHttpHeaders } from 'node:http'

/** A header that must appear at most once; Node joins repeated ones by `, `, which then matches nothing that is expected. */
export function header(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  return typeof value === 'string' ? value.trim() : null
}

/** Takes one header over as it came, where there is one. */
export function copyHeader(from: IncomingHttpHeaders, to: Record<string, string>, name: string): void {
  const value = header(from, name)
  if (value !== null) to[name] = value
}

/** Whether a body is named as JSON. */
export function isJsonType(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']
  return type === 'application/json' || /^application\/json(?:\s*;|$)/i.test(type ?? '')
}

/** Whether a body is named as an event stream. */
export function isStreamType(headers: IncomingHttpHeaders): boolean {
  const type = headers['content-type']
  return type === 'text/event-stream' || /^text\/event-stream(?:\s*;|$)/i.test(type ?? '')
}

/** Whether a body is declared to have at most so many bytes. */
export function hasLengthUpTo(headers: IncomingHttpHeaders, bytes: number): boolean {
  const length = headers['content-length']
  return length !== undefined && Number(length) <= bytes
}

/** The head of every event stream: no cache keeps it and no proxy in between holds it back. */
export const STREAM_HEADERS: Readonly<Record<string, string>> = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
}
