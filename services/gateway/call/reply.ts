import type { Duplex } from 'node:stream'
import type { Denial } from './denial.ts'

/** Status and headers towards the caller; the runner adds `x-plat-*`. */
export interface Head {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** Something that an upstream asks of the caller: it leaves a `message` record before the caller sees it. */
export interface Message {
  /** The protocol's own word, such as `elicitation/create`. */
  readonly method: string
  /** What is asked, as received; null when there is nothing to hash. */
  readonly args: Uint8Array | null
}

/** One unit of a reply: a JSON answer is one `final` frame, a stream is many. */
export interface Frame {
  readonly role: 'progress' | 'partial' | 'request' | 'final' | 'error'
  /** Parsed on first use: a frame that nobody looks at is never parsed. */
  readonly value: unknown
  /** The bytes as they came, framing included; null once changed, and then the plane encodes `value`. */
  readonly raw: Uint8Array | null
  /** What the upstream asks of the caller in this frame; absent in most planes. */
  readonly messages?: readonly Message[]
}

/**
 * How a reply's body ended. `suspended`: the upstream closed a stream before its response, and the protocol lets the client
 * fetch the rest later.
 */
export type Ending = 'complete' | 'suspended' | 'died' | 'client' | 'cut'

/** How an upstream ended a stream; undefined: the reply is complete. */
export type StreamEnd = 'suspended' | undefined

/**
 * A failure of the upstream: its connection, its silence, or a response that breaks the protocol. Any other error that frames
 * throw is a bug of the gateway. The message is shown to the caller, so it holds no text of the upstream and no address.
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
   * A list is the whole answer. An iterable gives one batch per upstream read, which becomes one write; when it throws an
   * `UpstreamError`, the upstream died. It may return a `StreamEnd`.
   */
  | {
      readonly kind: 'frames'
      readonly head: Head
      readonly frames: readonly Frame[] | AsyncIterable<readonly Frame[], unknown>
      /** What the plane knows once the head is there; `attempts` of the outcome. */
      readonly attempts: readonly { readonly endpoint: string; readonly status: number; readonly ms: number }[]
    }
  | {
      readonly kind: 'tunnel'
      readonly head: Head
      readonly socket: Duplex
      readonly attempts: readonly { readonly endpoint: string; readonly status: number; readonly ms: number }[]
    }

/** What a review or a stage makes of frames: `[]` means held back or dropped. */
export type FrameVerdict = readonly Frame[] | Denial | Promise<readonly Frame[] | Denial>
