import { createPublicKey } from 'node:crypto'
import { type Clock, readBody } from '@plat/core'
import { type PublicKey, publicKeyOf } from '@plat/keys'
import { type AuthReason, jwksSource, type KeyFetcher, type KeySource, staticSource } from '@plat/tokens'
import { PlatError } from '../error.ts'

/** How often a key document is fetched, in seconds: its cache lifetime at the broker. */
const REFRESH_SECONDS = 300

/** Trusted keys of a verifier: the URL of a key document (JWKS), or public keys in PEM. */
export type Trust = { readonly jwksURL: string } | { readonly publicKeys: readonly string[] }

/**
 * The token is refused.
 *
 * @example
 * if (error instanceof TokenRefusedError) response.writeHead(401).end(error.reason)
 */
export class TokenRefusedError extends PlatError {
  override readonly name = 'TokenRefusedError'
  readonly reason: AuthReason

  constructor(reason: AuthReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** Keys that are updated from their document. Nothing is fetched before the first token. */
export function keysOf(trust: Trust, fetch: typeof globalThis.fetch, clock: Clock): KeySource {
  if ('publicKeys' in trust) return staticSource(trust.publicKeys.map(keyIn))
  return jwksSource({
    url: trust.jwksURL,
    refreshSeconds: REFRESH_SECONDS,
    dialer: { fetchBytes: (url, _purpose, limits) => fetchBytes(fetch, url, limits) },
    clock,
    log: { info: ignore, warn: ignore },
  })
}

function keyIn(pem: string): PublicKey {
  const key = publicKeyOf(createPublicKey(pem))
  if (key === null) throw new PlatError('publicKeys: keys of this type cannot sign tokens')
  return key
}

/** Fetches a small document completely. */
async function fetchBytes(
  fetch: typeof globalThis.fetch,
  url: string,
  { maxBytes, timeoutMs }: Parameters<KeyFetcher['fetchBytes']>[2],
) {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(timeoutMs) })
  const bytes = await readBody(response.body, maxBytes)
  if (bytes === null) throw new PlatError('the key document is too large')
  return { status: response.status, bytes }
}

function ignore(): void {}
