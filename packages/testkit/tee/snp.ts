import { hash, type KeyObject, randomBytes, sign } from 'node:crypto'
import { der, type Issued, type KeyKind } from '../authority.ts'

/** Prefix of the extensions in which AMD writes the patch levels of a chip's certificate. */
const SPL = '1.3.6.1.4.1.3704.1.3.'
const CHIP = randomBytes(64)

/** Differences of a chip's certificate from the correct one. */
interface ChipOptions {
  readonly id?: Buffer | null
  readonly levels?: Readonly<Record<string, number>>
  readonly ucode?: number
  readonly key?: KeyKind
  readonly notAfter?: number
}

export interface SnpOptions {
  /** The ARK that the chip's certificate is of. */
  readonly by: Issued
  readonly nonce: string
  /** 48 bytes in hexadecimal. */
  readonly measurement: string
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly certificate?: ChipOptions
  /** Edits the report before it is signed. */
  readonly report?: (bytes: Buffer) => void
}

/** An attestation report of SEV-SNP over a nonce, as the firmware of a machine makes it, and the certificate of its chip. */
export async function snpReport(overrides: SnpOptions): Promise<{ readonly report: Buffer; readonly x5c: string }> {
  const vcek = await chip(overrides)
  return { report: reportOf(vcek.privateKey, overrides), x5c: vcek.x5c }
}

/** A chip's certificate, made as AMD makes them: for one chip at one patch level. */
function chip({ by, now, certificate = {} }: SnpOptions): Promise<Issued> {
  const { id = CHIP, ucode = 0x44, key = 'P-384', notAfter = now + 1000, levels } = certificate
  const extensions = Object.entries(levels ?? { 1: 2, 2: 0, 3: 5, 8: ucode }).map(([component, level]) => ({
    oid: SPL + component,
    critical: false,
    value: der(0x02, Buffer.from(level < 0x80 ? [level] : [0, level])),
  }))
  if (id !== null) extensions.push({ oid: '1.3.6.1.4.1.3704.1.4', critical: false, value: id })
  return by.issue({ name: 'SEV-VCEK', key, keyUsage: null, notAfter, extensions })
}

function reportOf(key: KeyObject, { nonce, measurement, report: change = () => {} }: SnpOptions): Buffer {
  const bytes = Buffer.alloc(0x4a0)
  bytes.writeUInt32LE(2, 0)
  bytes.writeUInt32LE(1, 0x34)
  hash('sha512', nonce, 'buffer').copy(bytes, 0x50)
  bytes.write(measurement, 0x90, 'hex')
  Buffer.from([2, 0, 0, 0, 0, 0, 5, 0x44]).copy(bytes, 0x180)
  CHIP.copy(bytes, 0x1a0)
  change(bytes)
  const signature = sign('sha384', bytes.subarray(0, 0x2a0), { key, dsaEncoding: 'ieee-p1363' })
  Buffer.from(signature.subarray(0, 48)).reverse().copy(bytes, 0x2a0)
  Buffer.from(signature.subarray(48)).reverse().copy(bytes, 0x2e8)
  return bytes
}
