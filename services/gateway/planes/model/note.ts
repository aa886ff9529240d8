import type { WireRequest } from '../../call/index.ts'
import type { ModelEndpoint } from './upstream/endpoint.ts'

/** State of a call that was forwarded. */
class ForwardedCall {
  /** The endpoint of a route with fallbacks that responded, whose prices apply; null: none yet, or the only one of its route. */
  readonly answering: ModelEndpoint | null
  /** The response was stored before, and no provider received the call. */
  readonly isCached: boolean

  constructor(answering: ModelEndpoint | null, isCached = false) {
    this.answering = answering
    this.isCached = isCached
  }
}

const UNANSWERED = new ForwardedCall(null)

type Noted = Pick<WireRequest, 'note'>

/** Notes that a call is being sent to a provider. */
export function noteForwarded(wire: Noted): void {
  wire.note = UNANSWERED
}

/** Notes the endpoint that responded. */
export function noteAnswering(wire: Noted, endpoint: ModelEndpoint): void {
  wire.note = new ForwardedCall(endpoint)
}

/** Notes the endpoint whose stored response the call gets. */
export function noteCached(wire: Noted, endpoint: ModelEndpoint): void {
  wire.note = new ForwardedCall(endpoint, true)
}

/** Returns true if the call gets a stored response. */
export function isCached({ note }: Noted): boolean {
  return note instanceof ForwardedCall && note.isCached
}

/** Returns true once the call is being sent to a provider. */
export function isForwarded({ note }: Noted): boolean {
  return note instanceof ForwardedCall
}

/** Returns the endpoint of a route with fallbacks that responded to a call; null without fallbacks or response. */
export function answeredBy({ wire: { note } }: { readonly wire: Noted }): ModelEndpoint | null {
  return note instanceof ForwardedCall ? note.answering : null
}
