import { X509Certificate } from 'node:crypto'
import { DerError, type DerValue, expectTag, oidOf, readDer, smallInteger, TAG } from '../der/reader.ts'

/** Object identifiers of RFC 5280 that are understood here. */
export const EXTENSION = {
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  extKeyUsage: '2.5.29.37',
} as const

/** Extensions that change nothing for us and are often marked critical. */
const HARMLESS: ReadonlySet<string> = new Set(['2.5.29.32', '2.5.29.14', '2.5.29.35'])

/** `[3]` of the extensions; `[2]` and `[6]` of a DNS name and a URI among the general names. */
const EXTENSIONS = 0xa3
const DNS_NAME = 0x82
const URI_NAME = 0x86

/** Bits of the extension keyUsage (RFC 5280 section 4.2.1.3). */
const KEY_USAGE = ['digitalSignature', 'nonRepudiation', 'keyEncipherment', 'dataEncipherment', 'keyAgreement'] as const
const MORE_KEY_USAGE = ['keyCertSign', 'cRLSign', 'encipherOnly'] as const
export type KeyUsage = (typeof KEY_USAGE)[number] | (typeof MORE_KEY_USAGE)[number]
const USAGE_BITS: readonly KeyUsage[] = [...KEY_USAGE, ...MORE_KEY_USAGE]

/** A certificate with members that Node does not expose. Untrusted before its path is verified. */
export interface Certificate {
  readonly x509: X509Certificate
  /** Milliseconds since the epoch. */
  readonly notBefore: number
  readonly notAfter: number
  readonly isCa: boolean
  /** Certificates of authorities that may stand below this one; null for no limit. */
  readonly pathLength: number | null
  /** Null without the extension. */
  readonly keyUsage: ReadonlySet<KeyUsage> | null
  readonly keyUsageIsCritical: boolean
  /** Object identifiers; null without the extension. */
  readonly extKeyUsage: readonly string[] | null
  readonly uris: readonly string[]
  readonly dnsNames: readonly string[]
  /** A critical extension that is not understood: such a certificate must be refused. */
  readonly hasUnknownCritical: boolean
  /** Value of an extension, by its object identifier; null when it is not there. */
  extension(oid: string): Uint8Array | null
}

interface Extension {
  readonly critical: boolean
  readonly value: Uint8Array
}

/** Reads a certificate (DER). Null for what is none, or says something twice. */
export function readCertificate(der: Uint8Array): Certificate | null {
  try {
    return describe(new X509Certificate(der))
  } catch {
    // OpenSSL and the DER reader have separate errors; either means that the bytes are not a certificate.
    return null
  }
}

/** The certificate of an x5c member: base64 DER (RFC 7515 section 4.1.6), in its one canonical text. */
export function readX5c(text: string): Certificate | null {
  const der = Buffer.from(text, 'base64')
  return der.toString('base64') === text ? readCertificate(der) : null
}

const PEM_BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** All certificates of a PEM text. Throws when there is none, or one cannot be read. */
export function readPemCertificates(text: string, name: string): readonly Certificate[] {
  const found = Array.from(text.matchAll(PEM_BLOCK), ([block]) => readCertificate(Buffer.from(block)))
  if (found.length === 0) throw new Error(`${name}: holds no certificate in PEM form`)
  return found.map((certificate) => {
    if (certificate === null) throw new Error(`${name}: holds a certificate that cannot be read`)
    return certificate
  })
}

function describe(x509: X509Certificate): Certificate {
  const extensions = extensionsOf(x509.raw)
  const value = (oid: string) => extensions.get(oid)?.value ?? null
  const basic = value(EXTENSION.basicConstraints)
  const usage = value(EXTENSION.keyUsage)
  const extended = value(EXTENSION.extKeyUsage)
  const names = generalNames(value(EXTENSION.subjectAltName))
  return {
    x509,
    notBefore: x509.validFromDate.getTime(),
    notAfter: x509.validToDate.getTime(),
    ...basicConstraints(basic),
    keyUsage: usage === null ? null : usageOf(usage),
    keyUsageIsCritical: extensions.get(EXTENSION.keyUsage)?.critical === true,
    extKeyUsage: extended === null ? null : readDer(extended).children.map(oidOf),
    uris: names.filter(({ tag }) => tag === URI_NAME).map(ascii),
    dnsNames: names.filter(({ tag }) => tag === DNS_NAME).map(ascii),
    hasUnknownCritical: extensions.entries().some(([oid, { critical }]) => critical && !isUnderstood(oid)),
    extension: value,
  }
}

function isUnderstood(oid: string): boolean {
  return HARMLESS.has(oid) || Object.values<string>(EXTENSION).includes(oid)
}

function extensionsOf(der: Uint8Array): ReadonlyMap<string, Extension> {
  const tbs = expectTag(readDer(der).children[0], TAG.sequence)
  const list = tbs.children.find(({ tag }) => tag === EXTENSIONS)?.children[0]?.children ?? []
  const extensions = new Map<string, Extension>()
  for (const each of list) {
    const [id, ...rest] = expectTag(each, TAG.sequence).children
    const oid = oidOf(id)
    if (extensions.has(oid)) throw new DerError('an extensionis listed twice')
    const critical = rest[0]?.tag === TAG.boolean && rest[0].content[0] === 0xff
    extensions.set(oid, { critical, value: expectTag(rest.at(-1), TAG.octetString).content })
  }
  return extensions
}

function basicConstraints(value: Uint8Array | null): { readonly isCa: boolean; readonly pathLength: number | null } {
  const fields = value === null ? [] : expectTag(readDer(value), TAG.sequence).children
  const isCa = fields[0]?.tag === TAG.boolean && fields[0].content[0] === 0xff
  const length = fields.find(({ tag }) => tag === TAG.integer)
  return { isCa, pathLength: length === undefined ? null : smallInteger(length) }
}

function usageOf(value: Uint8Array): ReadonlySet<KeyUsage> {
  const [, ...bits] = expectTag(readDer(value), TAG.bitString).content
  return new Set(USAGE_BITS.filter((_name, at) => ((bits[at >> 3] ?? 0) & (0x80 >> (at & 7))) !== 0))
}

function generalNames(value: Uint8Array | null): readonly DerValue[] {
  return value === null ? [] : expectTag(readDer(value), TAG.sequence).children
}

function ascii({ content }: DerValue): string {
  return Buffer.from(content).toString('latin1')
}
