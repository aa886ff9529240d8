import { AsyncLocalStorage } from 'node:async_hooks'

const storage = new AsyncLocalStorage<string | null>()

/** W3C Trace Context, section 3.2: version, trace, parent and flags, in lower case; all zeros are invalid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/**
 * Runs a function whose calls carry this `traceparent`, unless the client sets its own. A malformed one is ignored.
 *
 * @example
 * await withTraceparent(request.headers.traceparent, () => client.callTool({ name: 'read_note' }))
 */
export function withTraceparent<T>(value: string | null | undefined, run: () => T): T {
  return storage.run(isTraceparent(value) ? value : null, run)
}

/**
 * Returns the `traceparent` of the request that is being served, or null.
 *
 * @example
 * logger.info({ traceparent: currentTraceparent() })
 */
export function currentTraceparent(): string | null {
  return storage.getStore() ?? null
}

/** Whether a value is a well-formed `traceparent`. */
export function isTraceparent(value: unknown): value is string {
  return typeof value === 'string' && TRACEPARENT.test(value)
}
