import type { Duplex } from 'node:stream'
import type { Denial } from './denial.ts'

/** Status and headers of a response to the caller; the runner adds `x-plat-*`. */
export interface Head {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** A request of an upstream to the caller, recorded as `message` before it is sent to the caller. */
export interface Message {
  /** The method of the protocol, such as `elicitation/create`. */
  readonly method: string
  /** The parameters as received; null when there are none. */
  readonly args: Uint8Array | null
  /** The task whose status the message states, if it is not a request but a changed status. */
  readonly task?: { readonly id: string; readonly status: string }
}

/** One unit of a reply: a JSON response is one `final` frame, a stream has many frames. */
export interface Frame {
  readonly role: 'progress' | 'partial' | 'request' | 'final' | 'error'
  /** Parsed on first use, so that a frame that no review reads is never parsed. */
  readonly value: unknown
  /** The bytes as received, including framing; null when the frame was changed, so that the plane encodes `value`. */
  readonly raw: Uint8Array | null
  /** `raw` as a string if its bytes are ASCII and the string exists already; then it need not be decoded for the response. */
  readonly ascii?: string | null
  /** Requests of the upstream to the caller in this frame; absent in most planes. */
  readonly messages?: readonly Message[]
}

/**
 * How the body of a reply ended. `suspended`: the upstream closed the stream before its response, and the client can resume it
 * later; `died`: the upstream failed; `client`: the caller left; `cut`: the gateway ended it.
 */
export type Ending = 'complete' | 'suspended' | 'died' | 'client' | 'cut'

/** How an upstream ended a stream; undefined: the reply is complete. */
export type StreamEnd = 'suspended' | undefined

/**
 * A failure of the upstream: a connection error, a timeout, or an invalid response. Any other error that frames throw is a bug of the
 * gateway. The message is sent to the caller, so it contains no text of the upstream and no address.
 */
export class UpstreamError extends Error {
  readonly code: 'upstream_error' | 'upstream_timeout'

  constructor(message: string, options: { readonly code?: UpstreamError['code']; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.name = 'UpstreamError'
    this.code = options.code ?? 'upstream_error'
  }
}

export type Reply =
  /**
   * A list is the whole response. An iterable yields one batch per upstream read, which becomes one write. It throws an
   * `UpstreamError` when the upstream fails, and may return a `StreamEnd`.
   */
  | {
      readonly kind: 'frames'
      readonly head: Head
      readonly frames: readonly Frame[] | AsyncIterable<readonly Frame[], unknown>
      /** Attempts up to the response head; `attempts` of the outcome. */
      readonly attempts: readonly { readonly endpoint: string; readonly status: number; readonly ms: number }[]
    }
  | {
      readonly kind: 'tunnel'
      readonly head: Head
      readonly socket: Duplex
      readonly attempts: readonly { readonly endpoint: string; readonly status: number; readonly ms: number }[]
    }

/** Result of a review for a frame: the frames to send instead, or a denial. `[]` holds the frame back or drops it. */
export type FrameVerdict = readonly Frame[] | Denial | Promise<readonly Frame[] | Denial>
