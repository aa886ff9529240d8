import { constants, type KeyObject, verify } from 'node:crypto'
import { DerError, type DerValue, expectTag, oidOf, readDer, TAG } from '../der/reader.ts'
import type { Certificate } from './certificate.ts'

const UTC_TIME = 0x17
const GENERALIZED_TIME = 0x18
/** `[0]` of the extensions of a list. */
const EXTENSIONS = 0xa0

/** Signature algorithms of lists that are accepted, by object identifier. PSS is AMD's: SHA-384. */
const ALGORITHMS: Readonly<Record<string, { readonly digest: string; readonly isPss: boolean }>> = {
  '1.2.840.113549.1.1.10': { digest: 'sha384', isPss: true },
  '1.2.840.113549.1.1.11': { digest: 'sha256', isPss: false },
  '1.2.840.113549.1.1.12': { digest: 'sha384', isPss: false },
  '1.2.840.10045.4.3.2': { digest: 'sha256', isPss: false },
  '1.2.840.10045.4.3.3': { digest: 'sha384', isPss: false },
}

/** A certificate revocation list (RFC 5280 section 5). Not trusted before `isSignedBy` returned true for its issuer. */
export interface Crl {
  /** Name of the issuer, in DER. */
  readonly issuer: Uint8Array
  /** Milliseconds since the epoch. */
  readonly issuedAt: number
  readonly nextUpdate: number
  /** Serial numbers in lower-case hexadecimal without leading zeros. */
  readonly revoked: ReadonlySet<string>
  isSignedBy(key: KeyObject): boolean
}

const PEM_BLOCK = /-----BEGIN X509 CRL-----([A-Za-z0-9+/=\s]+)-----END X509 CRL-----/

/** Reads a list in DER or PEM. Throws DerError on other bytes, on a list without nextUpdate, and on one with critical extensions. */
export function readCrl(bytes: Uint8Array): Crl {
  const [, pem] = PEM_BLOCK.exec(Buffer.from(bytes).toString('latin1')) ?? []
  const [tbs, algorithm, signature] = expectTag(
    readDer(pem === undefined ? bytes : Buffer.from(pem, 'base64')),
    TAG.sequence,
  ).children
  const fields = [...expectTag(tbs, TAG.sequence).children]
  if (fields[0]?.tag === TAG.integer) fields.shift()
  const [inner, issuer, issuedAt, nextUpdate, ...rest] = fields
  const oid = oidOf(expectTag(algorithm, TAG.sequence).children[0])
  if (oid !== oidOf(expectTag(inner, TAG.sequence).children[0])) throw new DerError('two signature algorithms')
  refuseCritical(rest.find(({ tag }) => tag === EXTENSIONS))
  const entries = rest.find(({ tag }) => tag === TAG.sequence)?.children ?? []
  const signed = expectTag(tbs, TAG.sequence).whole
  const [, ...signatureBytes] = expectTag(signature, TAG.bitString).content
  return {
    issuer: expectTag(issuer, TAG.sequence).whole,
    issuedAt: timeOf(issuedAt),
    nextUpdate: timeOf(nextUpdate),
    revoked: new Set(entries.map(revokedSerial)),
    isSignedBy: (key) => verifies(oid, key, { signed, signature: Buffer.from(signatureBytes) }),
  }
}

/** Name of the subject of a certificate, in DER. */
export function subjectOf({ x509 }: Certificate): Uint8Array {
  const fields = expectTag(readDer(x509.raw).children[0], TAG.sequence).children
  const first = fields[0]?.tag === TAG.integer ? 0 : 1
  return expectTag(fields[first + 4], TAG.sequence).whole
}

/** Serial number of a certificate, in the form of `Crl.revoked`. */
export function serialOf({ x509 }: Certificate): string {
  return x509.serialNumber.toLowerCase().replace(/^0+/, '')
}

function revokedSerial(entry: DerValue): string {
  const [serial, , extensions] = expectTag(entry, TAG.sequence).children
  refuseCritical(extensions)
  return Buffer.from(expectTag(serial, TAG.integer).content).toString('hex').replace(/^0+/, '')
}

/** A critical extension changes which certificates a list is about, so that none is understood here. */
function refuseCritical(extensions: DerValue | undefined): void {
  const list = extensions?.tag === EXTENSIONS ? extensions.children[0] : extensions
  for (const { children } of list?.children ?? []) {
    if (children[1]?.tag === TAG.boolean) throw new DerError('a critical extension')
  }
}

function timeOf(value: DerValue | undefined): number {
  const text = Buffer.from(value?.content ?? []).toString('latin1')
  const shape =
    value?.tag === UTC_TIME ? /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/ : /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/
  const match = value?.tag === UTC_TIME || value?.tag === GENERALIZED_TIME ? shape.exec(text) : null
  if (match === null) throw new DerError('a time')
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number)
  // Two digits from 50 on are of the last century (RFC 5280 section 4.1.2.5.1).
  const century = value?.tag === UTC_TIME ? (year < 50 ? 2000 : 1900) : 0
  return Date.UTC(century + year, month - 1, day, hour, minute, second)
}

function verifies(
  oid: string,
  key: KeyObject,
  { signed, signature }: { readonly signed: Uint8Array; readonly signature: Uint8Array },
): boolean {
  const algorithm = Object.hasOwn(ALGORITHMS, oid) ? ALGORITHMS[oid] : undefined
  if (algorithm === undefined) return false
  const isRsa = oid.startsWith('1.2.840.113549.')
  if (key.asymmetricKeyType !== (isRsa ? 'rsa' : 'ec')) return false
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants
  return verify(algorithm.digest, signed, { key, ...(algorithm.isPss && { padding, saltLength }) }, signature)
}
