import { generateKeyPairSync, hash, type KeyObject, randomBytes, sign } from 'node:crypto'
import { der, derOid, type Issued, type KeyKind } from '../authority.ts'

export const QE_SIGNER = 'cd'.repeat(32)
const TD_REGISTERS = Buffer.alloc(5 * 48, 7)
/** Measurement of the machine of `tdxQuote`. */
export const TD_MEASUREMENT = hash('sha384', TD_REGISTERS)
export const FMSPC = '00906ed50000'
const SGX = '1.2.840.113741.1.13.1'
/** Bit SEPT_VE_DISABLE of the TD attributes, in their fourth byte. */
const SEPT_VE_DISABLE = 0x10

export interface TdxOptions {
  /** The authority of the platform's certificate. */
  readonly by: Issued
  /** Authorities between it and the root, nearest first; they are in the quote. */
  readonly above?: readonly Issued[]
  readonly nonce: string
  readonly key?: KeyKind
  /** How often the platform's certificate is in the chain. */
  readonly copies?: number
  readonly notAfter?: number
  /** SVN of all components of the platform, and of the PCE. */
  readonly svn?: number
  /** Edits the signed part of the quote, and the report of the quoting enclave, before they are signed. */
  readonly quote?: (bytes: Buffer) => void
  readonly enclave?: (bytes: Buffer) => void
}

const sized = (octets: 2 | 4, bytes: Buffer) => {
  const size = Buffer.alloc(octets)
  size.writeUIntLE(bytes.length, 0, octets)
  return Buffer.concat([size, bytes])
}
const typed = (type: number, bytes: Buffer) => Buffer.concat([Buffer.from([type, 0]), sized(4, bytes)])
const p1363 = (key: KeyObject, bytes: Buffer) => sign('sha256', bytes, { key, dsaEncoding: 'ieee-p1363' })

/** The extension in which Intel writes the platform into a PCK certificate. */
function platformExtension(svn: number): Buffer {
  const member = (oid: string, value: Buffer) => der(0x30, derOid(oid), value)
  const svns = Array.from({ length: 17 }, (_, at) => member(`${SGX}.2.${at + 1}`, der(0x02, Buffer.from([svn]))))
  return der(
    0x30,
    member(`${SGX}.2`, der(0x30, ...svns)),
    member(`${SGX}.3`, der(0x04, Buffer.alloc(2))),
    member(`${SGX}.4`, der(0x04, Buffer.from(FMSPC, 'hex'))),
  )
}

/** A quote, made as the quoting enclave of a platform makes it, and the certificate of the platform. */
export async function tdxQuote(overrides: TdxOptions): Promise<{ readonly quote: Buffer; readonly platform: Issued }> {
  const { by, above = [], nonce, key = 'P-256', copies = 1, notAfter, svn = 5, quote, enclave } = overrides
  const extensions = [{ oid: SGX, critical: false, value: platformExtension(svn) }]
  const platform = await by.issue({ name: 'PCK', key, extensions, ...(notAfter !== undefined && { notAfter }) })
  const attestation = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { x = '', y = '' } = attestation.publicKey.export({ format: 'jwk' })
  const attestationKey = Buffer.concat([Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')])
  const authData = randomBytes(32)
  const qeReport = Buffer.alloc(384)
  qeReport.write(QE_SIGNER, 128, 'hex')
  qeReport.writeUInt16LE(2, 256)
  hash('sha256', Buffer.concat([attestationKey, authData]), 'buffer').copy(qeReport, 320)
  enclave?.(qeReport)
  const signed = Buffer.alloc(632)
  Buffer.from([4, 0, 2, 0, 0x81]).copy(signed)
  signed.fill(svn, 48, 48 + 16)
  signed[48 + 1] = 0
  signed[48 + 120 + 3] = SEPT_VE_DISABLE
  TD_REGISTERS.copy(signed, 48 + 136, 0, 48)
  TD_REGISTERS.copy(signed, 48 + 328, 48)
  hash('sha512', nonce, 'buffer').copy(signed, 48 + 520)
  quote?.(signed)
  const pem = [...Array.from({ length: copies }, () => platform), ...above].map((one) => `${one.pem}\n`).join('')
  const inner = [qeReport, p1363(platform.privateKey, qeReport), sized(2, authData), typed(5, Buffer.from(pem))]
  const data = [p1363(attestation.privateKey, signed), attestationKey, typed(6, Buffer.concat(inner))]
  return { quote: Buffer.concat([signed, sized(4, Buffer.concat(data))]), platform }
}

export interface TcbInfoOptions {
  readonly signer: Issued
  /** Milliseconds since the epoch. */
  readonly issuedAt: number
  readonly nextUpdate: number
  /** Levels by their lowest SVN, best first. */
  readonly levels: readonly (readonly [svn: number, status: string])[]
  readonly fmspc?: string
  /** Levels of the TDX module of version 1. */
  readonly module?: readonly (readonly [svn: number, status: string])[]
}

/** TCB info as Intel's service returns it. */
export function tcbInfo({ signer, issuedAt, nextUpdate, levels, fmspc = FMSPC, module = [] }: TcbInfoOptions): string {
  const components = (svn: number) => Array.from({ length: 16 }, (_, at) => ({ svn: at === 1 ? 0 : svn }))
  const body = JSON.stringify({
    id: 'TDX',
    version: 3,
    issueDate: new Date(issuedAt).toISOString(),
    nextUpdate: new Date(nextUpdate).toISOString(),
    fmspc,
    pceId: '0000',
    tdxModuleIdentities: [
      { id: 'TDX_01', tcbLevels: module.map(([isvsvn, tcbStatus]) => ({ tcb: { isvsvn }, tcbStatus })) },
    ],
    tcbLevels: levels.map(([svn, tcbStatus]) => ({
      tcb: { sgxtcbcomponents: components(svn), pcesvn: svn, tdxtcbcomponents: components(svn) },
      tcbStatus,
    })),
  })
  return `{"tcbInfo":${body},"signature":"${p1363(signer.privateKey, Buffer.from(body)).toString('hex')}"}`
}
