import type { AbortReason, Denial, Identity, WireRequest } from '../call/index.ts'
import type { Plane } from './plane.ts'
import type { Sink } from './runner/exchange.ts'

/** A request that the gateway makes for a caller as part of another one: a call with all stages and a separate record. */
export interface NestedRequest {
  readonly id: string
  /** The caller, as authenticated for the request that this one is part of. */
  readonly identity: Identity
  readonly wire: WireRequest
  readonly plane: Plane
  /** Receives the response. */
  readonly sink: Sink
  /** A drain aborts the call at once: it only prepares other calls. */
  readonly endsAtDrain: boolean
}

export interface NestedCall {
  /** Resolves when the call has ended. Never rejects. */
  readonly ended: Promise<void>
  /** Aborts the call; without effect once it has ended. */
  stop(reason: AbortReason, denial: Denial | null): void
}

/** Runs a nested request. The caller of this function limits their number and ends them with the request that they are part of. */
export type RunNested = (request: NestedRequest) => NestedCall
