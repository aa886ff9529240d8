import { verify } from 'node:crypto'
import { readDer, smallInteger } from '../der/reader.ts'
import type { Certificate } from '../x509/certificate.ts'
import { verifyPath } from '../x509/path.ts'
import type { Quote } from './quote.ts'

/** Sizes and offsets of an attestation report (AMD SEV-SNP firmware ABI, table "ATTESTATION_REPORT"), in bytes. */
const REPORT_BYTES = 0x4a0
const SIGNED_BYTES = 0x2a0
const AT = {
  version: 0x00,
  policy: 0x08,
  vmpl: 0x30,
  algorithm: 0x34,
  signerInfo: 0x48,
  reportData: 0x50,
  measurement: 0x90,
  reportedTcb: 0x180,
  chipId: 0x1a0,
  r: 0x2a0,
  s: 0x2e8,
} as const

/** ECDSA P-384 with SHA-384; its numbers are written little-endian in 72 bytes each. */
const ECDSA_P384 = 1
const NUMBER_BYTES = 72
const P384_BYTES = 48
/** Bits of the guest policy: an agent may migrate the machine to another host; the host may debug it. */
const MIGRATE_MA = 1n << 18n
const DEBUG = 1n << 19n
const VERSIONS: ReadonlySet<number> = new Set([2, 3, 4, 5])

/** Extensions of the certificates of chips (AMD "VCEK and VLEK certificate specification"). */
const HARDWARE_ID = '1.3.6.1.4.1.3704.1.4'
const SPL = '1.3.6.1.4.1.3704.1.3.'

/** Byte of each component's security patch level in a reported TCB, by its extension. Chips with an FMC have another order. */
const TCB_LAYOUT: Readonly<Record<string, number>> = { '1': 0, '2': 1, '3': 6, '8': 7 }
const TCB_LAYOUT_WITH_FMC: Readonly<Record<string, number>> = { '9': 0, '1': 1, '2': 2, '3': 3, '8': 7 }

export interface SnpEvidence {
  readonly report: Uint8Array
  /** The chip's certificate (VCEK), or that of its cloud (VLEK). */
  readonly certificate: Certificate
}

/** Components of a TCB that may have a minimum, by name, with the arc of their extension in the chip's certificate. */
const COMPONENTS = { bootloader: '1', tee: '2', snp: '3', microcode: '8', fmc: '9' } as const
export type TcbComponent = keyof typeof COMPONENTS

export function isTcbComponent(name: string): name is TcbComponent {
  return Object.hasOwn(COMPONENTS, name)
}

export interface SnpRules {
  readonly roots: readonly Certificate[]
  /** Lowest security patch level of each component. */
  readonly minTcb: ReadonlyMap<TcbComponent, number>
  /** Accepts machines whose policy lets a migration agent move them. */
  readonly allowMigrationAgent: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Verifies an SEV-SNP attestation report up to AMD's roots. Returns the reason when it does not hold. */
export function verifySnp({ report, certificate }: SnpEvidence, rules: SnpRules): Quote | string {
  if (report.length !== REPORT_BYTES) return 'the report has another size'
  const bytes = Buffer.from(report)
  if (!VERSIONS.has(bytes.readUInt32LE(AT.version))) return 'the version of the report is not known'
  if (bytes.readUInt32LE(AT.algorithm) !== ECDSA_P384) return 'the signature algorithm of the report is not known'
  const path = verifyPath(certificate, { intermediates: [], anchors: rules.roots, now: rules.now })
  if (path.kind === 'no path') return path.reason
  if (!signatureHolds(bytes, certificate)) return 'the report signature is wrong'
  const policy = bytes.readBigUInt64LE(AT.policy)
  if ((policy & DEBUG) !== 0n) return 'the machine allows debugging'
  if ((policy & MIGRATE_MA) !== 0n && !rules.allowMigrationAgent) return 'the machine allows a migration agent'
  if (bytes.readUInt32LE(AT.vmpl) !== 0) return 'the report was not requested by the most privileged level'
  const fault = chipFault(bytes, certificate) ?? tcbFault(certificate, rules.minTcb)
  if (fault !== null) return fault
  return {
    reportData: bytes.subarray(AT.reportData, AT.reportData + 64),
    measurement: bytes.toString('hex', AT.measurement, AT.measurement + 48),
    chain: path.chain,
  }
}

/** Compares the certificate's levels with the minimum. `chipFault` has shown that the reported TCB is the certified one. */
function tcbFault(certificate: Certificate, minTcb: ReadonlyMap<TcbComponent, number>): string | null {
  for (const [component, minimum] of minTcb) {
    const extension = certificate.extension(SPL + COMPONENTS[component])
    const level = extension === null ? null : levelOf(extension)
    if (level === null) return `the chip has no TCB component ${component}`
    if (level < minimum) return `the TCB is too old: ${component} ${level} is below the minimum of ${minimum}`
  }
  return null
}

function signatureHolds(bytes: Buffer, { x509: { publicKey } }: Certificate): boolean {
  if (publicKey.asymmetricKeyDetails?.namedCurve !== 'secp384r1') return false
  const numbers = [AT.r, AT.s].map((at) => bytes.subarray(at, at + NUMBER_BYTES))
  if (numbers.some((number) => number.subarray(P384_BYTES).some((byte) => byte !== 0))) return false
  const signature = Buffer.concat(numbers.map((number) => Buffer.from(number.subarray(0, P384_BYTES)).reverse()))
  return verify('sha384', bytes.subarray(0, SIGNED_BYTES), { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)
}

/** A certificate is for one chip at one patch level: a report of another chip or level under it is not what was certified. */
function chipFault(bytes: Buffer, certificate: Certificate): string | null {
  const byCloud = ((bytes.readUInt32LE(AT.signerInfo) >> 2) & 7) === 1
  const hardware = certificate.extension(HARDWARE_ID)
  const chip = bytes.subarray(AT.chipId, AT.chipId + 64)
  if (!byCloud && (hardware === null || !chip.equals(hardware))) return 'the certificate is that of another chip'
  const hasFmc = certificate.extension(`${SPL}9`) !== null
  for (const [component, at] of Object.entries(hasFmc ? TCB_LAYOUT_WITH_FMC : TCB_LAYOUT)) {
    const level = certificate.extension(SPL + component)
    if (level === null || levelOf(level) !== bytes[AT.reportedTcb + at]) {
      return 'the certificate is for another patch level'
    }
  }
  return null
}

function levelOf(extension: Uint8Array): number | null {
  try {
    return smallInteger(readDer(extension))
  } catch {
    // Bytes that are not a DER integer are not a level.
    return null
  }
}
