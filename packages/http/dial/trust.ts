import { createHash } from 'node:crypto'

/** TLS trust roots and client certificate. */
export interface TrustOptions {
  /** CA certificates (PEM) trusted in addition to the system's. */
  readonly caPEM?: string
  readonly clientCert?: { readonly certPEM: string; readonly keyPEM: string }
  /** Name in the server certificate, if different from the host. */
  readonly serverName?: string
  /**
   * Path of a Unix socket to connect to, whatever the host of the URL is. Never from a resource or a response: its author could
   * then reach every socket of this machine. `sbxd.socket` is the one key of gateway.json that names one.
   */
  readonly socketPath?: string
}

/** Joins CA bundles; returns null when there are none. */
export function joinedBundles(bundles: readonly (string | null)[]): string | null {
  const some = bundles.filter((bundle) => bundle !== null)
  return some.length === 0 ? null : some.join('\n')
}

/** Number of bundles with a cached mark; only a few are in use at a time. */
const MAX_MARKS = 64

/** Maps trust options to short keys. A bundle is hashed once, not for each call. */
export class TrustMarks {
  readonly #known = new Map<string, string>()
  readonly #withKey = new WeakMap<TrustOptions, string>()

  of(options: TrustOptions): string {
    const { caPEM, clientCert, serverName, socketPath } = options
    if (socketPath !== undefined) return hashOf([caPEM, serverName, socketPath])
    if (clientCert !== undefined) return this.#keyed(options, clientCert)
    if (serverName !== undefined) return hashOf([caPEM, serverName])
    if (caPEM === undefined) return ''
    const known = this.#known.get(caPEM)
    if (known !== undefined) return known
    if (this.#known.size >= MAX_MARKS) this.#known.clear()
    const mark = hashOf([caPEM])
    this.#known.set(caPEM, mark)
    return mark
  }

  /** Identified by the object, so that no string containing a private key is kept here. */
  #keyed(options: TrustOptions, { certPEM, keyPEM }: NonNullable<TrustOptions['clientCert']>): string {
    const known = this.#withKey.get(options)
    if (known !== undefined) return known
    const mark = hashOf([options.caPEM, certPEM, keyPEM, options.serverName])
    this.#withKey.set(options, mark)
    return mark
  }
}

function hashOf(parts: readonly (string | undefined)[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64')
}
