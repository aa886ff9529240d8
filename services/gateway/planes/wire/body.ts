import type { Clock } from '@plat/core'
import { type BodyFault, collectBody } from '@plat/http'
import { OVERLOAD_RETRY_MS } from '@plat/process'
import { type Denial, deny, type RequestContext } from '../../call/index.ts'
import { isJsonType } from './headers.ts'

/** Limits for reading a body. */
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
  use: (bytes: Uint8Array) => T,
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
