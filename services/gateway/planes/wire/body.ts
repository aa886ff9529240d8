import type { Clock } from '@plat/core'
import { type BodyFault, readBody } from '@plat/http'
import { type Arrival, type Denial, deny } from '../../call/index.ts'
import { isJsonType } from './headers.ts'

/** The limits under which a body is read. */
export interface BodyLimits {
  readonly clock: Clock
  /** Document 3: `maxBodyBytes`. */
  readonly maxBodyBytes: number
  /** Document 3: `bodyReadTimeoutSeconds`, in milliseconds. */
  readonly bodyReadTimeoutMs: number
}

/** What `use` makes of the bytes of a JSON body; whether they are JSON is not asked here. */
export function useJsonBytes<T>(
  { wire }: Arrival,
  limits: BodyLimits,
  use: (bytes: Uint8Array) => T,
): Denial | Promise<T | Denial> {
  if (!isJsonType(wire.headers)) return deny('unsupported_media_type', 'Content-Type must be application/json')
  const reading = readBody(wire.body, {
    maxBytes: limits.maxBodyBytes,
    timeoutMs: limits.bodyReadTimeoutMs,
    clock: limits.clock,
    headers: wire.headers,
  })
  return reading.then((read) => (read instanceof Uint8Array ? use(read) : bodyDenial(read, limits)))
}

function bodyDenial(fault: BodyFault, limits: BodyLimits): Denial {
  switch (fault.why) {
    case 'too_large':
      return deny('body_too_large', `the body is larger than ${limits.maxBodyBytes} bytes`)
    case 'chunks':
      return deny('invalid_request', 'the body comes in too many small chunks')
    case 'encoding':
      return deny('unsupported_media_type', 'Content-Encoding must be identity')
    case 'timeout':
      return deny('request_timeout', `the body did not arrive within ${limits.bodyReadTimeoutMs} ms`)
    case 'aborted':
      return deny('invalid_request', 'the body ended too early')
  }
}
