import { hash, type KeyObject, verify, X509Certificate } from 'node:crypto'
import { DerError, type DerValue, expectTag, oidOf, readDer, smallInteger, TAG } from '../der/reader.ts'

/** Object identifiers of RFC 5652 and RFC 8017. */
const OID = {
  data: '1.2.840.113549.1.7.1',
  signedData: '1.2.840.113549.1.7.2',
  contentType: '1.2.840.113549.1.9.3',
  messageDigest: '1.2.840.113549.1.9.4',
} as const

/** SHA-256, and the name of RSA with SHA-256 that Azure writes in its place. */
const SHA256: ReadonlySet<string> = new Set(['2.16.840.1.101.3.4.2.1', '1.2.840.113549.1.1.11'])
/** RSA (PKCS #1 v1.5), by the key type's name or together with SHA-256. */
const RSA: ReadonlySet<string> = new Set(['1.2.840.113549.1.1.1', '1.2.840.113549.1.1.11'])

/** Context tags: `[0]` of content, certificates and signed attributes, `[1]` of revocation lists. */
const CONTEXT_0 = 0xa0
const CONTEXT_1 = 0xa1
/** `[0]` of a subject key identifier that is not constructed. */
const KEY_IDENTIFIER = 0x80
/** An OCTET STRING in pieces, as BER writes it. */
const OCTET_STRING_IN_PIECES = 0x24

/** Certificates that a message may carry. */
const MAX_CERTIFICATES = 10
/** The least size of a signer's RSA key, in bits. */
const LEAST_RSA_BITS = 2048

/** A CMS message (RFC 5652) with its content inside and one signer. Nothing in it is trusted before `signedBy` said yes. */
export interface SignedData {
  readonly content: Uint8Array
  readonly certificates: readonly X509Certificate[]
  /**
   * Did the holder of this certificate sign the content? The signer's own name for its certificate must be this one's, so a
   * message that names another certificate than the one that was judged says no.
   */
  signedBy(certificate: X509Certificate): boolean
}

interface Signer {
  readonly identifier: DerValue
  /** Null when the content itself is signed. */
  readonly attributes: DerValue | null
  readonly signature: Uint8Array
}

/**
 * Reads a CMS message narrowly: content inside, exactly one signer, SHA-256 and RSA. Null for everything else, MD5, SHA-1 and
 * DSA included.
 */
export function readSignedData(bytes: Uint8Array): SignedData | null {
  return orNull(() => readMessage(bytes))
}

function orNull<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof DerError) return null
    throw error
  }
}

function readMessage(bytes: Uint8Array): SignedData {
  const message = expectTag(readDer(bytes, { indefinite: true }), TAG.sequence)
  const [type, wrapped] = message.children
  if (oidOf(type) !== OID.signedData) throw new DerError('no signed data')
  const body = expectTag(only(expectTag(wrapped, CONTEXT_0)), TAG.sequence)
  const [version, digests, inner, ...rest] = body.children
  smallInteger(version)
  expectTag(digests, TAG.set)
  const content = contentOf(expectTag(inner, TAG.sequence))
  const certificates = rest[0]?.tag === CONTEXT_0 ? rest[0].children : []
  const last = rest.filter(({ tag }) => tag !== CONTEXT_0 && tag !== CONTEXT_1)
  const signer = signerOf(only(expectTag(only({ children: last }), TAG.set)))
  if (certificates.length > MAX_CERTIFICATES) throw new DerError('too many certificates')
  return {
    content,
    certificates: certificates.map(certificateOf),
    signedBy: (certificate) =>
      orNull(() => names(signer.identifier, certificate) && holds(signer, content, certificate.publicKey)) === true,
  }
}

function contentOf(inner: DerValue): Uint8Array {
  const [type, wrapped] = inner.children
  if (oidOf(type) !== OID.data) throw new DerError('the content is not data')
  const octets = only(expectTag(wrapped, CONTEXT_0))
  if (octets.tag !== OCTET_STRING_IN_PIECES) return expectTag(octets, TAG.octetString).content
  return Buffer.concat(octets.children.map((piece) => expectTag(piece, TAG.octetString).content))
}

function certificateOf(value: DerValue): X509Certificate {
  if (expectTag(value, TAG.sequence).indefinite) throw new DerError('a certificate that is not DER')
  try {
    return new X509Certificate(value.whole)
  } catch {
    throw new DerError('a certificate that cannot be read')
  }
}

function signerOf(info: DerValue): Signer {
  const [version, identifier, digest, ...rest] = expectTag(info, TAG.sequence).children
  smallInteger(version)
  if (identifier === undefined || !SHA256.has(algorithmOf(digest))) throw new DerError('the digest is not SHA-256')
  const attributes = rest[0]?.tag === CONTEXT_0 ? rest[0] : null
  const [algorithm, signature, unsigned, ...more] = attributes === null ? rest : rest.slice(1)
  if (!RSA.has(algorithmOf(algorithm))) throw new DerError('the signature is not RSA with SHA-256')
  if ((unsigned !== undefined && unsigned.tag !== CONTEXT_1) || more.length > 0) throw new DerError('a signer')
  if (attributes?.indefinite === true) throw new DerError('signed attributes that are not DER')
  return { identifier, attributes, signature: expectTag(signature, TAG.octetString).content }
}

function algorithmOf(value: DerValue | undefined): string {
  return oidOf(expectTag(value, TAG.sequence).children[0])
}

/** Does the signer's identifier name this certificate, by issuer and serial number or by its key identifier? */
function names(identifier: DerValue, certificate: X509Certificate): boolean {
  const tbs = expectTag(readDer(certificate.raw).children[0], TAG.sequence).children
  const [serial, , issuer] = tbs[0]?.tag === CONTEXT_0 ? tbs.slice(1) : tbs
  if (identifier.tag === KEY_IDENTIFIER) return holdsKeyIdentifier(tbs, identifier.content)
  const [theirIssuer, theirSerial] = expectTag(identifier, TAG.sequence).children
  return same(theirIssuer, issuer) && same(theirSerial, serial)
}

function same(a: DerValue | undefined, b: DerValue | undefined): boolean {
  return a !== undefined && b !== undefined && Buffer.compare(a.whole, b.whole) === 0
}

/** The extension subjectKeyIdentifier as encoded in a certificate: its OID, then an OCTET STRING around another. */
function holdsKeyIdentifier(tbs: readonly DerValue[], identifier: Uint8Array): boolean {
  const extensions = tbs.at(-1)?.children[0]?.children ?? []
  const found = extensions.find(({ children }) => oidOf(children[0]) === '2.5.29.14')?.children.at(-1)
  return found !== undefined && Buffer.compare(readDer(found.content).content, identifier) === 0
}

function holds({ attributes, signature }: Signer, content: Uint8Array, key: KeyObject): boolean {
  if (key.asymmetricKeyType !== 'rsa' || (key.asymmetricKeyDetails?.modulusLength ?? 0) < LEAST_RSA_BITS) return false
  if (attributes === null) return verify('sha256', content, key, signature)
  const type = attribute(attributes, OID.contentType)
  const digest = expectTag(attribute(attributes, OID.messageDigest), TAG.octetString).content
  if (oidOf(type) !== OID.data || Buffer.compare(digest, hash('sha256', content, 'buffer')) !== 0) return false
  // RFC 5652 section 5.4: the signature is over the attributes as a SET, not under the tag that they travel with.
  const signed = Buffer.from(attributes.whole)
  signed[0] = TAG.set
  return verify('sha256', signed, key, signature)
}

/** The one value of the one attribute of this type. */
function attribute(attributes: DerValue, type: string): DerValue {
  const found = attributes.children.filter((each) => oidOf(expectTag(each, TAG.sequence).children[0]) === type)
  return only(expectTag(only({ children: found }).children[1], TAG.set))
}

function only({ children }: { readonly children: readonly DerValue[] }): DerValue {
  const [child] = children
  if (child === undefined || children.length !== 1) throw new DerError('expected exactly one value')
  return child
}
