/** Limits of a listener. Each has a default here; a service overrides those that its specification sets. */
export interface ListenLimits {
  /** Deadline for the complete request head, in milliseconds. */
  readonly headersMs: number
  /**
   * Deadline for the whole request including its body, in milliseconds; 0 disables it. Raw routes set a shorter deadline with `readBody`; this one
   * covers them too, and is the deadline of API routes.
   */
  readonly requestMs: number
  /** Idle keep-alive timeout in milliseconds: longer than the usual 60 s of load balancers. */
  readonly keepAliveMs: number
  /** Interval of the check for connections beyond `headersMs` or `requestMs`, in milliseconds. */
  readonly checkEveryMs: number
  /** Maximum size of a request head in bytes. */
  readonly maxHeaderBytes: number
  /** Maximum number of header fields in a request. */
  readonly maxHeaders: number
  /** Maximum number of open connections; further ones are closed on arrival. */
  readonly maxConnections: number
  /**
   * Maximum number of open connections per peer address (an IPv6 /64 counts as one); further ones are closed on arrival. Peers in `trustedProxies`
   * are exempt.
   */
  readonly maxConnectionsPerPeer: number
  /** Number of requests after which a connection is closed, so that load is redistributed. */
  readonly maxRequestsPerSocket: number
  /** Maximum body size on an API route in bytes; raw routes use `readBody`. */
  readonly maxBodyBytes: number
  /** How long the unread rest of a request may take after the response was sent, in milliseconds; then the connection is destroyed. */
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
