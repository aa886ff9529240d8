import 'reflect-metadata'
import { hash, KeyObject, sign, type webcrypto } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import { der, derOid } from '@plat/keys'

x509.cryptoProvider.set(crypto)

/** Hashes and curves of the keys that an authority can make. */
const KEY_KINDS = {
  'P-256': { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  'P-384': { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  RSA: rsa(2048, 'SHA-256'),
  /** Obsolete, must be refused. */
  'RSA-512': rsa(512, 'SHA-256'),
  'RSA-768': rsa(768, 'SHA-256'),
  'RSA-1024': rsa(1024, 'SHA-256'),
  'RSA-SHA-1': rsa(2048, 'SHA-1'),
} as const
export type KeyKind = keyof typeof KEY_KINDS

const HOUR_MS = 60 * 60 * 1000

function rsa(modulusLength: number, digest: string) {
  return { name: 'RSASSA-PKCS1-v1_5', modulusLength, publicExponent: new Uint8Array([1, 0, 1]), hash: digest } as const
}

/** A certificate with its private key. */
export interface Issued {
  readonly der: Buffer
  readonly pem: string
  /** Base64 DER, as a member of x5c. */
  readonly x5c: string
  readonly privateKey: KeyObject
  /** Issues a certificate below this one. */
  issue(overrides: CertificateOptions): Promise<Issued>
}

/** Options of a certificate. Absent members are those of a valid leaf. */
export interface CertificateOptions {
  /** Common name. */
  readonly name: string
  readonly key?: KeyKind
  /** A certificate whose key this one shall have too. */
  readonly keyOf?: Issued
  /** Whether it is a certificate authority; a number limits the authorities below it (`pathLenConstraint`). */
  readonly ca?: boolean | number
  readonly uris?: readonly string[]
  readonly dnsNames?: readonly string[]
  /** `KeyUsageFlags` of @peculiar/x509 joined; null for no such extension. Default: that of a leaf or an authority. */
  readonly keyUsage?: number | null
  readonly keyUsageIsCritical?: boolean
  readonly extKeyUsage?: readonly string[]
  /** Milliseconds since the epoch. Default: an hour around `now` of the authority. */
  readonly notBefore?: number
  readonly notAfter?: number
  /** Further extensions as they are: an object identifier, and the value in DER. */
  readonly extensions?: readonly { readonly oid: string; readonly critical: boolean; readonly value: Uint8Array }[]
}

interface Pair {
  readonly keys: webcrypto.CryptoKeyPair
  readonly certificate: x509.X509Certificate
  readonly algorithm: (typeof KEY_KINDS)[KeyKind]
}

/** Creates a root for tests. `now` in milliseconds since the epoch. */
export function createAuthority({ now, ...overrides }: CertificateOptions & { readonly now: number }): Promise<Issued> {
  return issue({ ca: true, ...overrides }, null, now)
}

let serial = 0

const pairs = new WeakMap<Issued, webcrypto.CryptoKeyPair>()

async function issue(overrides: CertificateOptions, issuer: Pair | null, now: number): Promise<Issued> {
  const algorithm = KEY_KINDS[overrides.key ?? 'P-256']
  const known = overrides.keyOf && pairs.get(overrides.keyOf)
  const keys = known ?? (await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']))
  const issuerName = issuer?.certificate.subject ?? `CN=${overrides.name}`
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: (++serial).toString(16).padStart(4, '0'),
    subject: `CN=${overrides.name}`,
    issuer: issuerName,
    notBefore: new Date(overrides.notBefore ?? now - HOUR_MS),
    notAfter: new Date(overrides.notAfter ?? now + HOUR_MS),
    publicKey: keys.publicKey,
    signingKey: issuer?.keys.privateKey ?? keys.privateKey,
    signingAlgorithm: issuer?.algorithm ?? algorithm,
    extensions: [...extensionsOf(overrides)],
  })
  const der = Buffer.from(certificate.rawData)
  const pair = { keys, certificate, algorithm }
  const issued: Issued = {
    der,
    pem: certificate.toString('pem'),
    x5c: der.toString('base64'),
    privateKey: KeyObject.from(keys.privateKey),
    issue: (below) => issue(below, pair, now),
  }
  pairs.set(issued, keys)
  return issued
}

function* extensionsOf(overrides: CertificateOptions): Generator<x509.Extension> {
  const { KeyUsageFlags } = x509
  const isCa = overrides.ca !== undefined && overrides.ca !== false
  if (isCa) {
    yield new x509.BasicConstraintsExtension(true, typeof overrides.ca === 'number' ? overrides.ca : undefined, true)
  }
  const usual = isCa ? KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign : KeyUsageFlags.digitalSignature
  const usage = overrides.keyUsage === undefined ? usual : overrides.keyUsage
  if (usage !== null) yield new x509.KeyUsagesExtension(usage, overrides.keyUsageIsCritical ?? true)
  if (overrides.extKeyUsage !== undefined) yield new x509.ExtendedKeyUsageExtension([...overrides.extKeyUsage])
  const names = [
    ...(overrides.uris ?? []).map((value) => ({ type: 'url' as const, value })),
    ...(overrides.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
  ]
  if (names.length > 0) yield new x509.SubjectAlternativeNameExtension(names)
  for (const { oid, critical, value } of overrides.extensions ?? []) {
    yield new x509.Extension(oid, critical, new Uint8Array(value))
  }
}

/** Flags for `Wish.keyUsage`. */
export const keyUsage = {
  digitalSignature: x509.KeyUsageFlags.digitalSignature,
  keyEncipherment: x509.KeyUsageFlags.keyEncipherment,
  keyCertSign: x509.KeyUsageFlags.keyCertSign,
} as const

/** How a CMS message is made. What is absent is what a well-made one says. */
export interface CmsOptions {
  readonly content: Uint8Array
  readonly signers: readonly Issued[]
  /** Certificates that travel in it. Default: those of the signers. */
  readonly certificates?: readonly Issued[]
  /** Whose name the signer gives as its own. Default: its own. */
  readonly signerName?: Issued
  /** Name of the digest. Default: SHA-256. */
  readonly digestOid?: string
  /** Name of the signature algorithm. Default: RSA. */
  readonly signatureOid?: string
  /** Attribute contentType. Default: data. */
  readonly contentTypeOid?: string
  /** Signs the content itself when false. */
  readonly signedAttributes?: boolean
  /** Attribute messageDigest. Default: the digest of the content. */
  readonly messageDigest?: Uint8Array
  /** Writes the outer layers and the content with end marks and in pieces, as BER allows. */
  readonly indefinite?: boolean
}

const OIDS = {
  data: '1.2.840.113549.1.7.1',
  signedData: '1.2.840.113549.1.7.2',
  contentType: '1.2.840.113549.1.9.3',
  messageDigest: '1.2.840.113549.1.9.4',
  sha256: '2.16.840.1.101.3.4.2.1',
  rsa: '1.2.840.113549.1.1.1',
} as const

export { der, derOid } from '@plat/keys'

const NULL = Buffer.from([0x05, 0x00])

/** A CMS message (RFC 5652, SignedData with its content inside) of RSA signers. */
export function signedMessage(overrides: CmsOptions): Buffer {
  const outer = overrides.indefinite === true ? berOpen : der
  const digest = der(0x30, derOid(overrides.digestOid ?? OIDS.sha256), NULL)
  const octets = overrides.indefinite === true ? inPieces(overrides.content) : der(0x04, overrides.content)
  const infos = overrides.signers.map((signer) => signerInfo(signer, digest, overrides))
  const certificates = (overrides.certificates ?? overrides.signers).map((issued) => issued.der)
  const body = outer(
    0x30,
    der(0x02, Buffer.from([1])),
    der(0x31, digest),
    outer(0x30, derOid(OIDS.data), outer(0xa0, octets)),
    der(0xa0, ...certificates),
    der(0x31, ...infos),
  )
  return outer(0x30, derOid(OIDS.signedData), outer(0xa0, body))
}

function berOpen(tag: number, ...pieces: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.from([tag, 0x80]), ...pieces, Buffer.from([0, 0])])
}

function inPieces(content: Uint8Array): Buffer {
  const half = content.length >> 1
  return berOpen(0x24, der(0x04, content.subarray(0, half)), der(0x04, content.subarray(half)))
}

function signerInfo(signer: Issued, digest: Buffer, overrides: CmsOptions): Buffer {
  const certificate = new x509.X509Certificate(new Uint8Array((overrides.signerName ?? signer).der))
  const issuer = Buffer.from(certificate.issuerName.toArrayBuffer())
  const name = der(0x30, issuer, der(0x02, Buffer.from(certificate.serialNumber, 'hex')))
  const attributes = [
    der(0x30, derOid(OIDS.contentType), der(0x31, derOid(overrides.contentTypeOid ?? OIDS.data))),
    der(
      0x30,
      derOid(OIDS.messageDigest),
      der(0x31, der(0x04, overrides.messageDigest ?? hash('sha256', overrides.content, 'buffer'))),
    ),
  ]
  const withAttributes = overrides.signedAttributes !== false
  const signature = sign('sha256', withAttributes ? der(0x31, ...attributes) : overrides.content, signer.privateKey)
  return der(
    0x30,
    der(0x02, Buffer.from([1])),
    name,
    digest,
    ...(withAttributes ? [der(0xa0, ...attributes)] : []),
    der(0x30, derOid(overrides.signatureOid ?? OIDS.rsa), NULL),
    der(0x04, signature),
  )
}
