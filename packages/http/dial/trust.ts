/** Whom a TLS connection believes, and what it shows itself. */
export interface TrustOptions {
  /** CA certificates (PEM) that are trusted beside the system's. */
  readonly caPEM?: string
  readonly clientCert?: { readonly certPEM: string; readonly keyPEM: string }
}
