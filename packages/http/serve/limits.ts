/**
 * The limits of a listener. Each has a default here; a service overrides what its own document states.
 */
export interface ListenLimits {
  /** Milliseconds until the request head must be complete. */
  readonly headersMs: number
  /**
   * Milliseconds until the whole request, body included, must have come. The planes set their own, shorter deadline with
   * `readBody`; this one stands behind it and is the deadline of API routes. 0: none.
   */
  readonly requestMs: number
  /** Milliseconds that an idle keep-alive connection stays open: longer than the 60 s of usual load balancers. */
  readonly keepAliveMs: number
  /** Milliseconds between two looks for connections that overstay `headersMs` or `requestMs`. */
  readonly checkEveryMs: number
  /** Bytes of a request head. */
  readonly maxHeaderBytes: number
  /** Number of header fields in a request. */
  readonly maxHeaders: number
  /** Open connections; more are closed as they come. */
  readonly maxConnections: number
  /** Open connections of one peer address (of IPv6 one /64); more are closed as they come. A peer in `trustedProxies` has no such limit. */
  readonly maxConnectionsPerPeer: number
  /** Requests on one connection, after which it is closed so that load spreads anew. */
  readonly maxRequestsPerSocket: number
  /** Bytes of a body on an API route; the raw routes have `readBody`. */
  readonly maxBodyBytes: number
  /** Milliseconds that the unread rest of a request may take after its answer was sent; then the connection is cut. */
  readonly lingerMs: number
}

export const defaultLimits: ListenLimits = {
  headersMs: 10_000,
  requestMs: 75_000,
  keepAliveMs: 65_000,
  checkEveryMs: 1_000,
  maxHeaderBytes: 16 * 1024,
  maxHeaders: 200,
  maxConnections: 10_000,
  maxConnectionsPerPeer: 2_500,
  maxRequestsPerSocket: 100_000,
  maxBodyBytes: 1024 * 1024,
  lingerMs: 2_000,
}
