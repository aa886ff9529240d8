import { isSpiffeSegment, isTrustDomain } from '@plat/core'
import type { Certificate } from './certificate.ts'

/** Longest SPIFFE ID, in bytes (SPIFFE-ID section 2.3). */
const MAX_ID_BYTES = 2048
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1'
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2'

/** A SPIFFE ID that is well formed. */
export interface SpiffeId {
  readonly id: string
  readonly trustDomain: string
  /** Segments of the path; empty for the ID of a trust domain itself. */
  readonly path: readonly string[]
}

/** Parses any SPIFFE ID (SPIFFE-ID section 2), not only those of our sessions. Null when it is none. */
export function parseSpiffeId(id: string): SpiffeId | null {
  const [, trustDomain = '', rest = ''] = /^spiffe:\/\/([^/]+)((?:\/[^/]+)*)$/.exec(id) ?? []
  const path = rest.split('/').slice(1)
  if (id.length > MAX_ID_BYTES || !isTrustDomain(trustDomain) || !path.every(isSpiffeSegment)) return null
  return { id, trustDomain, path }
}

/** The SPIFFE ID of a leaf by the rules of X.509-SVID sections 2 to 4, or the rule that it breaks. Its path is verified elsewhere. */
export function leafSpiffeId(leaf: Certificate): SpiffeId | string {
  const [uri, another] = leaf.uris
  if (uri === undefined || another !== undefined) return 'the certificate must have exactly one URI name'
  const id = parseSpiffeId(uri)
  if (id === null || id.path.length === 0) return 'the URI name of the certificate is not a SPIFFE ID of a workload'
  if (leaf.isCa) return 'the certificate is one of an authority'
  const { keyUsage, extKeyUsage } = leaf
  if (keyUsage === null || !leaf.keyUsageIsCritical) return 'the certificate must have a critical key usage'
  if (!keyUsage.has('digitalSignature') || keyUsage.has('keyCertSign') || keyUsage.has('cRLSign')) {
    return 'the key usage of the certificate is not that of a leaf'
  }
  if (extKeyUsage !== null && !(extKeyUsage.includes(SERVER_AUTH) && extKeyUsage.includes(CLIENT_AUTH))) {
    return 'the extended key usage of the certificate is not that of a leaf'
  }
  return id
}
