import { verify } from 'node:crypto'
import { isObject, parseStrict } from '@plat/core'
import { DerError, expectTag, oidOf, readDer, smallInteger, TAG } from '../der/reader.ts'
import type { Certificate } from '../x509/certificate.ts'
import { verifyPath } from '../x509/path.ts'
import type { TdxQuote } from './tdx.ts'

/** Statuses that Intel gives TCB levels (Provisioning Certification Service, "TCB Info V3"). */
export const TCB_STATUSES = [
  'UpToDate',
  'SWHardeningNeeded',
  'ConfigurationNeeded',
  'ConfigurationAndSWHardeningNeeded',
  'OutOfDate',
  'OutOfDateConfigurationNeeded',
  'Revoked',
] as const

/** The extension of PCK certificates that names the platform, and its members. */
const SGX_EXTENSION = '1.2.840.113741.1.13.1'
const TCB = `${SGX_EXTENSION}.2`
const PCE_ID = `${SGX_EXTENSION}.3`
const FMSPC = `${SGX_EXTENSION}.4`
const COMPONENTS = 16
const PCE_SVN = `${TCB}.17`
/** Only this certificate signs TCB info: other certificates below Intel's root belong to platforms. */
const SIGNER_NAME = 'CN=Intel SGX TCB Signing'
/** The two members in Intel's order; the signature covers the bytes of the first one as they are. */
const SIGNED = /^\s*\{\s*"tcbInfo"\s*:\s*(\{.*\})\s*,\s*"signature"\s*:\s*"([0-9a-fA-F]{128})"\s*\}\s*$/s

interface TcbLevel {
  readonly status: string
  /** Lowest security version numbers of this level. */
  readonly sgx: readonly number[]
  readonly tdx: readonly number[]
  readonly pceSvn: number
}

interface ModuleLevel {
  readonly status: string
  readonly isvSvn: number
}

/** TCB info of one family of platforms. Not trusted before `isSignedBy` returned true. */
export interface TcbInfo {
  readonly fmspc: string
  readonly pceId: string
  /** Milliseconds since the epoch. */
  readonly issuedAt: number
  readonly nextUpdate: number
  readonly levels: readonly TcbLevel[]
  /** Levels of TDX modules of version 1 and later, by identity (`TDX_01`). */
  readonly modules: ReadonlyMap<string, readonly ModuleLevel[]>
  readonly signed: Uint8Array
  readonly signature: Uint8Array
}

/** Reads signed TCB info of version 3 for TDX. Throws on anything else. */
export function readTcbInfo(bytes: Uint8Array): TcbInfo {
  const [, body, signature] = SIGNED.exec(Buffer.from(bytes).toString('utf8')) ?? []
  if (body === undefined || signature === undefined) throw new Error('not a signed TCB info')
  const info = objectOf(parseStrict(Buffer.from(body)))
  if (info.id !== 'TDX' || info.version !== 3) throw new Error('not TCB info of version 3 for TDX')
  return {
    fmspc: textOf(info.fmspc).toLowerCase(),
    pceId: textOf(info.pceId).toLowerCase(),
    issuedAt: timeOf(info.issueDate),
    nextUpdate: timeOf(info.nextUpdate),
    levels: listOf(info.tcbLevels).map(levelOf),
    modules: new Map(listOf(info.tdxModuleIdentities ?? []).map(moduleOf)),
    signed: Buffer.from(body),
    signature: Buffer.from(signature, 'hex'),
  }
}

/** Whether Intel signed the TCB info: the signer's chain, leaf first, must lead to a root and carry Intel's name. */
export function isSignedByIntel(
  { signed, signature }: TcbInfo,
  chain: readonly Certificate[],
  { roots, now }: { readonly roots: readonly Certificate[]; readonly now: number },
): boolean {
  const [leaf, ...intermediates] = chain
  if (leaf === undefined || !leaf.x509.subject.split('\n').includes(SIGNER_NAME) || leaf.isCa) return false
  if (verifyPath(leaf, { intermediates, anchors: roots, now }).kind === 'no path') return false
  const { publicKey } = leaf.x509
  if (publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') return false
  return verify('sha256', signed, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)
}

/** Status of the platform and the TDX module of a verified quote, or why there is none. `infos` must be verified. */
export function tcbStatusesOf(
  { chain, teeTcbSvn }: TdxQuote,
  infos: readonly TcbInfo[],
): readonly string[] | { readonly fault: string } {
  const [leaf] = chain
  const platform = leaf === undefined ? null : platformOf(leaf)
  if (platform === null) return { fault: 'the certificate names no platform' }
  const info = infos.find(({ fmspc, pceId }) => fmspc === platform.fmspc && pceId === platform.pceId)
  if (info === undefined) return { fault: `no TCB info of the platform ${platform.fmspc} is configured` }
  const [moduleSvn = 0, moduleVersion = 0] = teeTcbSvn
  // From version 1 on, the first two numbers are those of the module, which has separate levels.
  const from = moduleVersion === 0 ? 0 : 2
  const level = info.levels.find(
    ({ sgx, tdx, pceSvn }) =>
      platform.pceSvn >= pceSvn &&
      sgx.every((lowest, at) => (platform.sgx[at] ?? -1) >= lowest) &&
      tdx.every((lowest, at) => at < from || (teeTcbSvn[at] ?? -1) >= lowest),
  )
  if (level === undefined) return { fault: 'the platform is below every TCB level' }
  if (moduleVersion === 0) return [level.status]
  const name = `TDX_${moduleVersion.toString(16).toUpperCase().padStart(2, '0')}`
  const module = info.modules.get(name)?.find(({ isvSvn }) => moduleSvn >= isvSvn)
  return module === undefined ? { fault: `no TCB level of the TDX module ${name}` } : [level.status, module.status]
}

interface Platform {
  readonly fmspc: string
  readonly pceId: string
  readonly sgx: readonly number[]
  readonly pceSvn: number
}

/** Returns the platform of a PCK certificate; null when it states none. */
function platformOf(leaf: Certificate): Platform | null {
  const extension = leaf.extension(SGX_EXTENSION)
  if (extension === null) return null
  try {
    const members = membersOf(expectTag(readDer(extension), TAG.sequence).children)
    const tcb = membersOf(expectTag(members.get(TCB), TAG.sequence).children)
    const hex = (oid: string) => Buffer.from(expectTag(members.get(oid), TAG.octetString).content).toString('hex')
    return {
      fmspc: hex(FMSPC),
      pceId: hex(PCE_ID),
      sgx: Array.from({ length: COMPONENTS }, (_, at) => smallInteger(tcb.get(`${TCB}.${at + 1}`))),
      pceSvn: smallInteger(tcb.get(PCE_SVN)),
    }
  } catch (error) {
    if (error instanceof DerError) return null
    throw error
  }
}

type DerValue = ReturnType<typeof readDer>

function membersOf(values: readonly DerValue[]): ReadonlyMap<string, DerValue | undefined> {
  return new Map(values.map(({ children }) => [oidOf(children[0]), children[1]]))
}

function levelOf(value: unknown): TcbLevel {
  const { tcb, tcbStatus } = objectOf(value)
  const { sgxtcbcomponents, tdxtcbcomponents, pcesvn } = objectOf(tcb)
  return {
    status: textOf(tcbStatus),
    sgx: svnsOf(sgxtcbcomponents),
    tdx: svnsOf(tdxtcbcomponents),
    pceSvn: numberOf(pcesvn),
  }
}

function moduleOf(value: unknown): readonly [string, readonly ModuleLevel[]] {
  const { id, tcbLevels } = objectOf(value)
  const levels = listOf(tcbLevels).map((level) => {
    const { tcb, tcbStatus } = objectOf(level)
    return { status: textOf(tcbStatus), isvSvn: numberOf(objectOf(tcb).isvsvn) }
  })
  return [textOf(id), levels]
}

function svnsOf(value: unknown): readonly number[] {
  const svns = listOf(value).map((component) => numberOf(objectOf(component).svn))
  if (svns.length !== COMPONENTS) throw new Error('a TCB level without 16 components')
  return svns
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(value)) throw new Error('an object is missing in the TCB info')
  return value
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('a list is missing in the TCB info')
  return value
}

function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new Error('a text is missing in the TCB info')
  return value
}

function numberOf(value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new Error('a number is missing in the TCB info')
  }
  return value
}

function timeOf(value: unknown): number {
  const time = Date.parse(textOf(value))
  if (Number.isNaN(time)) throw new Error('a time is missing in the TCB info')
  return time
}
