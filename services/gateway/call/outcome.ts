import type { BatchUse } from './batch.ts'
import type { ErrorCode } from './errors.ts'
import type { MediaUse } from './media.ts'

/** Tokens as the provider counted them. */
export interface Usage {
  readonly prompt: number
  readonly completion: number
  readonly cachedRead: number
  readonly cachedWrite: number
  readonly reasoning: number
}

/** How a call ended. Every call has exactly one. */
export interface Outcome {
  /** `suspended`: the upstream closed the stream before its response; the client may resume it with its last event id. */
  readonly result: 'completed' | 'suspended' | 'denied' | 'failed' | 'cancelled' | 'cut' | 'rewound' | 'unknown'
  readonly code: ErrorCode | null
  /** False: no upstream received the call, so reservations for it are released in full. */
  readonly forwarded: boolean
  readonly status: number
  readonly usage: Usage | null
  /** `cached`: the response was stored before, and nothing was used. */
  readonly usageSource: 'reported' | 'estimated' | 'none' | 'cached'
  readonly costMicros: number
  /** Images, characters or seconds of sound, as reported or as sent; absent: the call has none. */
  readonly media?: MediaUse
  /** The batch that the call created; absent: none. */
  readonly batch?: BatchUse
  readonly attempts: readonly { readonly endpoint: string; readonly status: number; readonly ms: number }[]
  readonly frames: number
  readonly bytesUp: number
  readonly bytesDown: number
  readonly upstreamMs: number
  readonly overheadMs: number
}
