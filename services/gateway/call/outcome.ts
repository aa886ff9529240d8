import type { ErrorCode } from './errors.ts'

/** Tokens as the provider counted them. */
export interface Usage {
  readonly prompt: number
  readonly completion: number
  readonly cachedRead: number
  readonly cachedWrite: number
  readonly reasoning: number
}

/** How a call ended: one per call, whatever happens. */
export interface Outcome {
  /** `suspended`: the upstream closed the stream before its response, and the client may fetch the rest by its last event id. */
  readonly result: 'completed' | 'suspended' | 'denied' | 'failed' | 'cancelled' | 'cut' | 'rewound' | 'unknown'
  readonly code: ErrorCode | null
  /** False: no upstream ever saw the call, so what a stage took for it goes back whole. */
  readonly forwarded: boolean
  readonly status: number
  readonly usage: Usage | null
  readonly usageSource: 'reported' | 'estimated' | 'none'
  readonly costMicros: number
  readonly attempts: readonly { readonly endpoint: string; readonly status: number; readonly ms: number }[]
  readonly frames: number
  readonly bytesUp: number
  readonly bytesDown: number
  readonly upstreamMs: number
  readonly overheadMs: number
}
