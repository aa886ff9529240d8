import { isHttpUrl } from '@plat/config'
import { type Clock, isObject, parseStrict } from '@plat/core'
import type { AlgorithmName } from '@plat/keys'
import type { Log } from '@plat/process'
import { jwksSource, type KeyFetcher } from './jwks-source.ts'
import type { KeySource } from './keyset.ts'
import type { Members } from './members.ts'

/** Largest metadata document, in bytes. */
const MAX_METADATA_BYTES = 256 * 1024
/** Deadline of one fetch, in milliseconds. */
const FETCH_TIMEOUT_MS = 5_000

export interface DiscoveryOptions {
  readonly issuer: string
  /** URL of the metadata, if not below the issuer; empty: below it. */
  readonly discoveryURL?: string
  readonly dialer: KeyFetcher
  /** Null: only the system's roots. */
  readonly caPEM: string | null
}

/**
 * Fetches the metadata of an issuer: OpenID Connect Discovery 1.0, else RFC 8414. Rejects when neither document exists or it belongs to another
 * issuer.
 */
export async function discoverIssuer({ issuer, discoveryURL, dialer, caPEM }: DiscoveryOptions): Promise<Members> {
  const limits = { maxBytes: MAX_METADATA_BYTES, timeoutMs: FETCH_TIMEOUT_MS, ...(caPEM !== null && { caPEM }) }
  for (const address of discoveryURL ? [discoveryURL] : metadataAddresses(issuer)) {
    const answer = await dialer.fetchBytes(address, 'jwks', limits)
    if (answer.status !== 200) continue
    const metadata = parseStrict(answer.bytes)
    if (!isObject(metadata)) throw new Error('the metadata of the issuer is not a JSON object')
    if (metadata.issuer !== issuer) throw new Error('the metadata is that of another issuer')
    return metadata
  }
  throw new Error('the issuer publishes no metadata: set its addresses')
}

/** Returns a URL of the metadata. Throws when it is missing, or less protected than the issuer's. */
export function endpointOf(metadata: Members, name: string): string {
  const address = metadata[name]
  if (typeof address !== 'string' || !isHttpUrl(address)) throw new Error(`the metadata names no "${name}"`)
  if (String(metadata.issuer).startsWith('https:') && !address.startsWith('https:')) {
    throw new Error(`"${name}" is not https`)
  }
  return address
}

export interface IssuerKeysOptions extends DiscoveryOptions {
  /** Empty: discovery before each fetch. */
  readonly jwksURL: string
  readonly refreshSeconds: number
  readonly algorithms: readonly AlgorithmName[]
  readonly clock: Clock
  readonly log: Log
}

/** Returns the keys of an issuer, from `jwksURL` or by discovery. */
export function issuerKeys(options: IssuerKeysOptions): KeySource {
  const { issuer, jwksURL, refreshSeconds, dialer, clock, log, caPEM } = options
  const algorithms = new Set(options.algorithms)
  const common = { refreshSeconds, dialer, clock, log, algorithms, ...(caPEM !== null && { caPEM }) }
  if (jwksURL !== '') return jwksSource({ ...common, url: jwksURL })
  const locate = async () => endpointOf(await discoverIssuer(options), 'jwks_uri')
  return jwksSource({ ...common, url: issuer, locate })
}

function metadataAddresses(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ]
}
