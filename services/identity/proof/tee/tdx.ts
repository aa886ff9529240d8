import { createPublicKey, hash, verify } from 'node:crypto'
import { encodeBase64url } from '@plat/core'
import { type Certificate, readPemCertificates } from '../x509/certificate.ts'
import { verifyPath } from '../x509/path.ts'
import type { Quote } from './quote.ts'

/** Sizes and offsets of a quote of version 4 (Intel TDX DCAP Quoting Library API, appendix A.3), in bytes. */
const HEADER_BYTES = 48
const BODY_END = HEADER_BYTES + 584
const QE_REPORT_BYTES = 384
const BODY = {
  teeTcbSvn: HEADER_BYTES,
  signerSeam: HEADER_BYTES + 64,
  seamAttributes: HEADER_BYTES + 112,
  tdAttributes: HEADER_BYTES + 120,
  mrTd: HEADER_BYTES + 136,
  rtmr: HEADER_BYTES + 328,
  reportData: HEADER_BYTES + 520,
} as const
/** In the report of the quoting enclave. */
const QE = { attributes: 48, signer: 128, product: 256, reportData: 320 } as const

const VERSION = 4
const ECDSA_P256 = 2
const TDX = 0x81
/** Types of certification data: the report of the quoting enclave with its own, and a chain in PEM. */
const QE_CERTIFICATION = 6
const PEM_CHAIN = 5
/** Product number of the quoting enclave for TDX, and the attribute that makes an enclave debuggable. */
const TD_QE_PRODUCT = 2
const SGX_DEBUG = 2
/** Bit 28 of the TD attributes: the host cannot inject faults into pages that the machine accepted. */
const SEPT_VE_DISABLE = 1 << 28
const TCB_SVN_BYTES = 16

/** Certificates of a PCK chain at most, the root included. */
const MAX_CHAIN = 4

/** Required MRSIGNER of the quoting enclave, as hexadecimal: Intel's identity of its TD QE. */
export const INTEL_QE_SIGNER = 'dc9e2a7c6f948f17474e34a7fc43ed030f7c1563f1babddf6340c82e0e54a8c5'

export interface TdxRules {
  readonly roots: readonly Certificate[]
  /** MRSIGNER in lower-case hexadecimal. */
  readonly qeSigner: string
  /** Accepts machines without SEPT_VE_DISABLE. */
  readonly allowSeptVe: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** A verified quote, with the inputs for choosing a TCB level. */
export interface TdxQuote extends Quote {
  /** Security version numbers of the TDX module, 16 bytes. */
  readonly teeTcbSvn: Uint8Array
}

/** A quote taken apart; nothing of it is trusted yet. */
interface Parts {
  readonly bytes: Buffer
  readonly signature: Buffer
  readonly attestationKey: Buffer
  readonly qeReport: Buffer
  readonly qeSignature: Buffer
  readonly qeAuthData: Buffer
  readonly chain: readonly Certificate[]
}

/** Verifies a TDX quote: quote by attestation key, key by quoting enclave, enclave by the platform's certificate, that by Intel's root. */
export function verifyTdx(quote: Uint8Array, rules: TdxRules): TdxQuote | string {
  const parts = takeApart(Buffer.from(quote))
  if (typeof parts === 'string') return parts
  const { bytes, chain } = parts
  const [leaf, ...intermediates] = chain
  if (leaf === undefined) return 'the quote carries no certificate'
  const path = verifyPath(leaf, { intermediates, anchors: rules.roots, now: rules.now })
  if (path.kind === 'no path') return path.reason
  const fault = enclaveFault(parts, leaf, rules.qeSigner) ?? machineFault(parts, rules)
  if (fault !== null) return fault
  const registers = bytes.subarray(BODY.rtmr, BODY.rtmr + 4 * 48)
  return {
    reportData: bytes.subarray(BODY.reportData, BODY.reportData + 64),
    // The firmware and everything that it measured into the registers: one of them alone says little.
    measurement: hash('sha384', Buffer.concat([bytes.subarray(BODY.mrTd, BODY.mrTd + 48), registers])),
    chain: path.chain,
    teeTcbSvn: bytes.subarray(BODY.teeTcbSvn, BODY.teeTcbSvn + TCB_SVN_BYTES),
  }
}

/** Takes pieces off the front; what is too short yields null once, and null ever after. */
class Cursor {
  #rest: Buffer | null

  constructor(bytes: Buffer) {
    this.#rest = bytes
  }

  take(size: number | null): Buffer | null {
    if (size === null || this.#rest === null || this.#rest.length < size) {
      this.#rest = null
      return null
    }
    const piece = this.#rest.subarray(0, size)
    this.#rest = this.#rest.subarray(size)
    return piece
  }

  number(octets: 2 | 4): number | null {
    return this.take(octets)?.readUIntLE(0, octets) ?? null
  }

  get isEmpty(): boolean {
    // Quotes are padded with zeros by some guests.
    return this.#rest?.every((byte) => byte === 0) === true
  }
}

const SHAPE = 'the quote is not of the shape of version 4'

function takeApart(bytes: Buffer): Parts | string {
  if (bytes.length < BODY_END) return SHAPE
  if (bytes.readUInt16LE(0) !== VERSION || bytes.readUInt16LE(2) !== ECDSA_P256 || bytes.readUInt32LE(4) !== TDX) {
    return 'only quotes of TDX, version 4, signed by ECDSA P-256 are read'
  }
  const outer = new Cursor(bytes.subarray(BODY_END))
  const data = new Cursor(outer.take(outer.number(4)) ?? Buffer.alloc(0))
  const signature = data.take(64)
  const attestationKey = data.take(64)
  const isQe = data.number(2) === QE_CERTIFICATION
  const inner = new Cursor(data.take(data.number(4)) ?? Buffer.alloc(0))
  const qeReport = inner.take(QE_REPORT_BYTES)
  const qeSignature = inner.take(64)
  const qeAuthData = inner.take(inner.number(2))
  const isChain = inner.number(2) === PEM_CHAIN
  const pem = inner.take(inner.number(4))
  if (!isQe || !isChain || pem === null || signature === null || attestationKey === null) return SHAPE
  if (qeReport === null || qeSignature === null || qeAuthData === null || !outer.isEmpty) return SHAPE
  const chain = chainOf(pem)
  return chain === null
    ? 'the certificates of the quote cannot be read'
    : { bytes, signature, attestationKey, qeReport, qeSignature, qeAuthData, chain }
}

function chainOf(pem: Buffer): readonly Certificate[] | null {
  try {
    const chain = readPemCertificates(pem.toString('latin1'), 'the quote')
    return chain.length <= MAX_CHAIN ? chain : null
  } catch {
    return null
  }
}

/** The platform's key signed the enclave's report, which carries the hash of the key that signed the quote. */
function enclaveFault({ qeReport, qeSignature, qeAuthData, attestationKey }: Parts, leaf: Certificate, signer: string) {
  const { publicKey } = leaf.x509
  if (publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') return 'the certificate is that of no platform'
  if (!verify('sha256', qeReport, { key: publicKey, dsaEncoding: 'ieee-p1363' }, qeSignature)) {
    return 'the signature of the quoting enclave is wrong'
  }
  const expected = hash('sha256', Buffer.concat([attestationKey, qeAuthData]), 'buffer')
  const held = qeReport.subarray(QE.reportData, QE.reportData + 64)
  if (!held.equals(Buffer.concat([expected, Buffer.alloc(32)]))) return 'the signature key is not that of the enclave'
  if (qeReport.toString('hex', QE.signer, QE.signer + 32) !== signer)
    return 'the quoting enclave is that of another signer'
  if (qeReport.readUInt16LE(QE.product) !== TD_QE_PRODUCT) return 'the quoting enclave is another product'
  const attributes = qeReport[QE.attributes] ?? SGX_DEBUG
  return (attributes & SGX_DEBUG) === 0 ? null : 'the quoting enclave allows debugging'
}

function machineFault({ bytes, signature, attestationKey }: Parts, { allowSeptVe }: TdxRules): string | null {
  const x = encodeBase64url(attestationKey.subarray(0, 32))
  const y = encodeBase64url(attestationKey.subarray(32))
  if (!verifiesQuote({ kty: 'EC', crv: 'P-256', x, y }, bytes.subarray(0, BODY_END), signature)) {
    return 'the quote signature is wrong'
  }
  const zero = (at: number, size: number) => bytes.subarray(at, at + size).every((byte) => byte === 0)
  if (!zero(BODY.signerSeam, 48) || !zero(BODY.seamAttributes, 8)) return 'the TDX module is not that of Intel'
  if (!zero(BODY.tdAttributes, 1)) return 'the machine allows debugging'
  const hasSeptVe = (bytes.readUInt32LE(BODY.tdAttributes) & SEPT_VE_DISABLE) === 0
  return hasSeptVe && !allowSeptVe ? 'the machine does not set SEPT_VE_DISABLE' : null
}

function verifiesQuote(key: Readonly<Record<string, string>>, bytes: Buffer, signature: Buffer): boolean {
  try {
    const publicKey = createPublicKey({ format: 'jwk', key: { ...key } })
    return verify('sha256', bytes, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)
  } catch {
    // Coordinates that are not a point of the curve.
    return false
  }
}
