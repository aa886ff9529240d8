import { isHttpUrl } from '@plat/config'
import { parseStrict } from '@plat/core'
import { isObject, type KeyFetcher } from '@plat/tokens'

/** Largest metadata document, in bytes. */
const MAX_METADATA_BYTES = 256 * 1024
/** Deadline of one fetch, in milliseconds. */
const FETCH_TIMEOUT_MS = 5_000

export interface DiscoveryOptions {
  readonly issuer: string
  readonly dialer: KeyFetcher
  /** Null: the system's roots alone. */
  readonly caPEM: string | null
}

/**
 * Where the issuer says its keys are: OpenID Connect Discovery 1.0, then RFC 8414. Rejects when neither document is there, when
 * it is of another issuer, or when it names a key address that is less protected than the issuer's own.
 */
export async function discoverKeys({ issuer, dialer, caPEM }: DiscoveryOptions): Promise<string> {
  const limits = { maxBytes: MAX_METADATA_BYTES, timeoutMs: FETCH_TIMEOUT_MS, ...(caPEM !== null && { caPEM }) }
  for (const address of metadataAddresses(issuer)) {
    const answer = await dialer.fetchBytes(address, 'jwks', limits)
    if (answer.status === 200) return keyAddress(answer.bytes, issuer)
  }
  throw new Error('the issuer publishes no metadata: set jwksURL')
}

function metadataAddresses(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}

function keyAddress(bytes: Uint8Array, issuer: string): string {
  const metadata = parseStrict(bytes)
  if (!isObject(metadata)) throw new Error('the metadata of the issuer is no JSON object')
  if (metadata.issuer !== issuer) throw new Error('the metadata is that of another issuer')
  const { jwks_uri: address } = metadata
  if (typeof address !== 'string' || !isHttpUrl(address)) throw new Error('the metadata names no "jwks_uri"')
  if (issuer.startsWith('https:') && !address.startsWith('https:')) throw new Error('"jwks_uri" is not https')
  return address
}
