import { createHash } from 'node:crypto'

/** Whom a TLS connection believes, and what it shows itself. */
export interface TrustOptions {
  /** CA certificates (PEM) that are trusted beside the system's. */
  readonly caPEM?: string
  readonly clientCert?: { readonly certPEM: string; readonly keyPEM: string }
  /** The name in the certificate of the other side, where it is not the one that is connected to. */
  readonly serverName?: string
}

/** CA bundles as one; null where there is none. */
export function joinedBundles(bundles: readonly (string | null)[]): string | null {
  const some = bundles.filter((bundle) => bundle !== null)
  return some.length === 0 ? null : some.join('\n')
}

/** Bundles whose marks are kept; a handful is in use at a time. */
const MAX_MARKS = 64

/** Tells trust options apart by a short text. A bundle is hashed once and not with each call that names it. */
export class TrustMarks {
  readonly #known = new Map<string, string>()
  readonly #withKey = new WeakMap<TrustOptions, string>()

  of(options: TrustOptions): string {
    const { caPEM, clientCert, serverName } = options
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

  /** Known again by the object, so that no text with a private key in it is kept here. */
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
