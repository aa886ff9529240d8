import { createPublicKey } from 'node:crypto'
import { type Clock, readBody } from '@plat/core'
import { type PublicKey, publicKeyOf } from '@plat/keys'
import { type AuthReason, jwksSource, type KeyFetcher, type KeySource, staticSource } from '@plat/tokens'
import { PlatError } from '../error.ts'

/** How often a key document is read again, in seconds: what the broker lets it be kept. */
const REFRESH_SECONDS = 300

/** Whom a verifier trusts: the address of a key document (JWKS), or public keys in PEM. */
export type Trust = { readonly jwksURL: string } | { readonly publicKeys: readonly string[] }

/**
 * Who shows a token is not let in.
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

/** Keys that follow their document. Nothing is fetched before the first token comes. */
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
  if (key === null) throw new PlatError('publicKeys: a key of this type signs no token')
  return key
}

/** A small document, whole or not at all. */
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
