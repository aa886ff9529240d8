import type { Certificate } from './certificate.ts'

/** Certificates between a leaf and its anchor at most. */
const MAX_INTERMEDIATES = 6
/** Signatures that are looked at for one leaf: a tangle of certificates with one name must end. */
const MAX_SIGNATURES = 50

/** Signature algorithms of certificates that are accepted, by object identifier: no MD5, no SHA-1, no DSA. */
const ALGORITHMS: ReadonlySet<string> = new Set([
  '1.2.840.113549.1.1.10',
  '1.2.840.113549.1.1.11',
  '1.2.840.113549.1.1.12',
  '1.2.840.113549.1.1.13',
  '1.2.840.10045.4.3.2',
  '1.2.840.10045.4.3.3',
  '1.2.840.10045.4.3.4',
  '1.3.101.112',
])

/** The certificates of a valid path, leaf first and anchor last, or why there is none. */
export type PathVerdict =
  | { readonly kind: 'path'; readonly chain: readonly Certificate[] }
  | { readonly kind: 'no path'; readonly reason: string }

export interface PathRules {
  /** Certificates that the sender supplied, in any order; none is trusted. */
  readonly intermediates: readonly Certificate[]
  readonly anchors: readonly Certificate[]
  /** Milliseconds since the epoch: every certificate of the path must be valid then. */
  readonly now: number
}

/** Looks for a path by RFC 5280 section 6 from `leaf` to an anchor: signatures, dates, CA flags, key usage, path lengths. */
export function verifyPath(leaf: Certificate, rules: PathRules): PathVerdict {
  const search = { ...rules, signatures: 0 }
  const fault = certificateFault(leaf, rules.now)
  if (fault !== null) return { kind: 'no path', reason: fault }
  const above = climb(leaf, 0, search)
  if (above === null) return { kind: 'no path', reason: 'the certificate leads to no anchor that is trusted' }
  return { kind: 'path', chain: [leaf, ...above] }
}

interface Search extends PathRules {
  signatures: number
}

/** The certificates above `below` up to an anchor; `depth` authorities are below it already. */
function climb(below: Certificate, depth: number, search: Search): readonly Certificate[] | null {
  const anchor = search.anchors.find((candidate) => issued(candidate, below, depth, search))
  if (anchor !== undefined) return [anchor]
  if (depth >= MAX_INTERMEDIATES) return null
  for (const candidate of search.intermediates) {
    if (candidate === below || !issued(candidate, below, depth, search)) continue
    const found = climb(candidate, depth + 1, search)
    if (found !== null) return [candidate, ...found]
  }
  return null
}

function issued(issuer: Certificate, below: Certificate, depth: number, search: Search): boolean {
  // That the key usage of an issuer allows it is part of `checkIssued`, beside names and key identifiers.
  if (!issuer.isCa) return false
  if (issuer.pathLength !== null && issuer.pathLength < depth) return false
  if (certificateFault(issuer, search.now) !== null || !below.x509.checkIssued(issuer.x509)) return false
  return ++search.signatures <= MAX_SIGNATURES && below.x509.verify(issuer.x509.publicKey)
}

function certificateFault(certificate: Certificate, now: number): string | null {
  if (now < certificate.notBefore) return 'the certificate is not valid yet'
  if (now > certificate.notAfter) return 'the certificate has expired'
  if (certificate.hasUnknownCritical) return 'the certificate has a critical extension that is not understood'
  const algorithm = certificate.x509.signatureAlgorithmOid
  if (algorithm === undefined || !ALGORITHMS.has(algorithm)) {
    return 'the certificate is signed by an algorithm that is not accepted'
  }
  return null
}
