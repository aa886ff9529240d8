import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { tempFolder } from '@plat/testkit/local'
import { type SnpOptions, snpReport } from '@plat/testkit/tee/snp'
import {
  QE_SIGNER,
  type TcbInfoOptions,
  TD_MEASUREMENT,
  type TdxOptions,
  tcbInfo,
  tdxQuote,
} from '@plat/testkit/tee/tdx'
import { type TeeSettings, teeCheck } from '../tee.ts'
import { type CrlOptions, testCrl } from '../testing/crl.ts'
import { context, NONCE, proofOf, testParts } from '../testing/suite.ts'
import { readCertificate } from '../x509/certificate.ts'
import type { CollateralSettings } from './collateral.ts'
import type { TcbComponent } from './snp.ts'

const NOW = testParts().clock.now()
const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
const MEASUREMENT = 'ab'.repeat(48)
const dir = tempFolder()
const amd = await createAuthority({ name: 'ARK', key: 'RSA', now: NOW })
const ask = await amd.issue({ name: 'ASK', key: 'RSA', ca: true })
const intel = await createAuthority({ name: 'Intel root', now: NOW })
const platformCa = await intel.issue({ name: 'Platform CA', ca: true })
const signer = await intel.issue({ name: 'Intel SGX TCB Signing' })

let files = 0
/** Writes a file and returns its path. */
function fileOf(content: string | Buffer): string {
  const file = path.join(dir, `file-${++files}`)
  writeFileSync(file, content)
  return file
}

const ROOTS = { amd: fileOf(`${amd.pem}\n${ask.pem}`), intel: fileOf(intel.pem) }

const crlOf = (issuer: Issued, options: Partial<CrlOptions> = {}) => fileOf(testCrl(issuer, { now: NOW, ...options }))

const NO_COLLATERAL: CollateralSettings = {
  ...{ snpCrls: [], tdxCrls: [], tcbInfos: [], tcbSigner: '', tcbStatuses: new Set(['UpToDate']), maxAgeMs: 0 },
}

type Change = Partial<Omit<TeeSettings, 'collateral'>> & { readonly collateral?: Partial<CollateralSettings> }

async function verdictOf(evidence: object, { collateral, ...change }: Change): Promise<string> {
  const settings: TeeSettings = {
    ...{ snpRoots: ROOTS.amd, tdxRoots: ROOTS.intel, tdxQeSigner: QE_SIGNER },
    measurements: [`sev-snp:${MEASUREMENT}`, `tdx:${TD_MEASUREMENT}`],
    ...{ snpMinTcb: new Map(), snpAllowMigrationAgent: false, tdxAllowSeptVe: false },
    collateral: { ...NO_COLLATERAL, ...collateral },
    ...change,
  }
  const verdict = await teeCheck(settings, testParts()).verify(proofOf('tee', { nonce: NONCE, evidence }), context)
  return verdict.kind === 'established' ? 'established' : `${verdict.kind}: ${verdict.reason}`
}

async function snp(change: Change, overrides: Partial<SnpOptions> = {}): Promise<string> {
  const { report, x5c } = await snpReport({ by: ask, nonce: NONCE, measurement: MEASUREMENT, now: NOW, ...overrides })
  return verdictOf({ kind: 'sev-snp', report: report.toString('base64'), certificate: x5c }, change)
}

const machine = { by: platformCa, above: [platformCa], nonce: NONCE }

async function tdx(change: Change, overrides: Partial<TdxOptions> = {}): Promise<string> {
  const { quote } = await tdxQuote({ ...machine, ...overrides })
  return verdictOf({ kind: 'tdx', quote: quote.toString('base64') }, change)
}

test('a chip below the minimum of one component is refused, and the message names the component', async () => {
  const minimum = (component: TcbComponent, level: number) => ({ snpMinTcb: new Map([[component, level]]) })
  // The chip of the test has these levels.
  const levels = { bootloader: 2, tee: 0, snp: 5, microcode: 0x44 }
  for (const component of ['bootloader', 'tee', 'snp', 'microcode'] as const) {
    assert.equal(await snp(minimum(component, levels[component])), 'established')
    assert.match(await snp(minimum(component, levels[component] + 1)), new RegExp(`^failed: .*${component} .* minimum`))
  }
  assert.match(await snp(minimum('fmc', 0)), /^failed: the chip has no TCB component fmc/)
})

test('a migration agent and SEPT_VE are accepted only where the flags say so', async () => {
  const report = (bytes: Buffer) => void bytes.fill(4, 0x0a, 0x0b)
  assert.match(await snp({}, { report }), /^failed: .*migration agent/)
  assert.equal(await snp({ snpAllowMigrationAgent: true }, { report }), 'established')
  const quote = (bytes: Buffer) => void bytes.fill(0, 48 + 123, 48 + 124)
  assert.match(await tdx({}, { quote }), /^failed: .*SEPT_VE_DISABLE/)
  assert.equal(await tdx({ tdxAllowSeptVe: true }, { quote }), 'established')
})

test('a revoked intermediate authority or chip of AMD is refused', async () => {
  const crls = (...snpCrls: string[]) => ({ collateral: { snpCrls } })
  assert.equal(await snp(crls(crlOf(amd))), 'established')
  assert.match(await snp(crls(crlOf(amd, { revoked: [ask] }))), /^failed: CN=ASK is revoked/)
  assert.match(await snp(crls(crlOf(amd, { revoked: [amd] }))), /^failed: CN=ARK is revoked/)
  assert.match(await snp(crls(crlOf(ask))), /^failed: no revocation list of the issuer of CN=ASK/)
  const { report, x5c } = await snpReport({ by: ask, nonce: NONCE, measurement: MEASUREMENT, now: NOW })
  const chip = readCertificate(Buffer.from(x5c, 'base64')) ?? assert.fail('no certificate')
  const evidence = { kind: 'sev-snp', report: report.toString('base64'), certificate: x5c }
  const revoked = [{ ...ask, der: Buffer.from(chip.x509.raw) }]
  assert.equal(await verdictOf(evidence, crls(crlOf(amd), crlOf(ask))), 'established')
  assert.match(await verdictOf(evidence, crls(crlOf(amd), crlOf(ask, { revoked }))), /^failed: CN=SEV-VCEK is revoked/)
})

test('a revoked platform or authority of Intel is refused, and each certificate needs a list', async () => {
  const crls = (...tdxCrls: string[]) => ({ collateral: { tdxCrls } })
  assert.equal(await tdx(crls(crlOf(intel), crlOf(platformCa))), 'established')
  assert.match(await tdx(crls(crlOf(intel))), /^failed: no revocation list of the issuer of CN=PCK/)
  assert.match(await tdx(crls(crlOf(intel, { revoked: [platformCa] }), crlOf(platformCa))), /Platform CA is revoked/)
  const { quote, platform } = await tdxQuote(machine)
  const evidence = { kind: 'tdx', quote: quote.toString('base64') }
  const revoked = [platform]
  assert.match(
    await verdictOf(evidence, crls(crlOf(intel), crlOf(platformCa, { revoked }))),
    /^failed: CN=PCK is revoked/,
  )
})

test('a list that is missing, expired, too old, from the future, unsigned or of unknown scope stops every proof', async () => {
  const other = await createAuthority({ name: 'ARK', key: 'RSA', now: NOW })
  const cases = [
    [path.join(dir, 'missing'), /missing: the collateral cannot be read/],
    [fileOf('no list'), /cannot be read/],
    [crlOf(amd, { critical: true }), /cannot be read/],
    [crlOf(amd, { nextUpdate: NOW - 1000 }), /expired at .*: fetch the next one/],
    [crlOf(amd, { issuedAt: NOW - 2 * DAY_MS }), /older than -tee-collateral-max-age/],
    [crlOf(amd, { issuedAt: NOW + HOUR_MS }), /from the future/],
    [crlOf(amd, { signedBy: other }), /not signed by its issuer/],
  ] as const
  for (const [file, reason] of cases) {
    const verdict = await snp({ collateral: { snpCrls: [file], maxAgeMs: DAY_MS } })
    assert.match(verdict, reason)
    assert.ok(verdict.startsWith(`unreachable: ${file}: `), verdict)
  }
})

const chainFile = fileOf(signer.pem)

function withInfo(overrides: Partial<TcbInfoOptions> = {}, change: Partial<CollateralSettings> = {}): Change {
  const dates = { issuedAt: NOW - HOUR_MS, nextUpdate: NOW + DAY_MS }
  const info = tcbInfo({
    signer,
    ...dates,
    levels: [
      [5, 'UpToDate'],
      [3, 'OutOfDate'],
    ],
    ...overrides,
  })
  return { collateral: { tcbInfos: [fileOf(info)], tcbSigner: chainFile, ...change } }
}

test('the TCB status of the platform must be one that is allowed', async () => {
  assert.equal(await tdx(withInfo()), 'established')
  assert.match(
    await tdx(withInfo(), { svn: 4 }),
    /^failed: the TCB status OutOfDate is not one of -tee-tdx-tcb-statuses/,
  )
  assert.equal(await tdx(withInfo({}, { tcbStatuses: new Set(['OutOfDate']) }), { svn: 4 }), 'established')
  assert.match(await tdx(withInfo(), { svn: 2 }), /^failed: the platform is below every TCB level/)
  assert.match(await tdx(withInfo({ levels: [[5, 'Revoked']] })), /^failed: the TCB status Revoked/)
  assert.match(await tdx(withInfo({ fmspc: '00906ed50001' })), /^failed: no TCB info of the platform 00906ed50000/)
  // Microcode that is old under a TDX module that is new.
  const newModule = (bytes: Buffer) => void bytes.fill(5, 50, 64).fill(5, 48, 49)
  assert.match(await tdx(withInfo(), { svn: 4, quote: newModule }), /TCB status OutOfDate/)
  // A platform with new firmware whose TDX module is old.
  const quote = (bytes: Buffer) => void bytes.fill(3, 48, 49)
  assert.match(await tdx(withInfo(), { quote }), /TCB status OutOfDate/)
})

test('a TDX module of version 1 is judged by its own levels', async () => {
  const version = (svn: number) => ({ quote: (bytes: Buffer) => void Buffer.from([svn, 1]).copy(bytes, 48) })
  const levels = withInfo({
    module: [
      [4, 'UpToDate'],
      [2, 'OutOfDate'],
    ],
  })
  assert.equal(await tdx(levels, version(4)), 'established')
  assert.match(await tdx(levels, version(3)), /^failed: the TCB status OutOfDate/)
  assert.match(await tdx(levels, version(1)), /^failed: no TCB level of the TDX module TDX_01/)
  const newer = { quote: (bytes: Buffer) => void Buffer.from([9, 2]).copy(bytes, 48) }
  assert.match(await tdx(levels, newer), /^failed: no TCB level of the TDX module TDX_02/)
})

test('TCB info that is missing, changed, expired, too old or signed by somebody else stops every proof', async () => {
  const stranger = await (await createAuthority({ name: 'Intel root', now: NOW })).issue({
    name: 'Intel SGX TCB Signing',
  })
  const platform = await intel.issue({ name: 'Some other certificate' })
  const good = tcbInfo({ signer, issuedAt: NOW, nextUpdate: NOW + DAY_MS, levels: [[5, 'UpToDate']] })
  const info = (text: string) => ({ collateral: { tcbInfos: [fileOf(text)], tcbSigner: chainFile } })
  const cases: readonly (readonly [Change, RegExp])[] = [
    [withInfo({}, { tcbInfos: [path.join(dir, 'missing')] }), /cannot be read/],
    [withInfo({}, { tcbSigner: path.join(dir, 'missing') }), /cannot be read/],
    [info(good.replace('UpToDate', 'Upto_ate')), /not signed by Intel/],
    [info(good.replace(/,"signature".*/, '}')), /cannot be read/],
    [withInfo({ signer: stranger }), /not signed by Intel/],
    [withInfo({ signer: stranger }, { tcbSigner: fileOf(stranger.pem) }), /not signed by Intel/],
    [withInfo({ signer: platform }, { tcbSigner: fileOf(platform.pem) }), /not signed by Intel/],
    [withInfo({ nextUpdate: NOW - 1000 }), /expired/],
    [withInfo({ issuedAt: NOW - 2 * DAY_MS }, { maxAgeMs: DAY_MS }), /older than/],
    [withInfo({}, { tdxCrls: [crlOf(intel, { revoked: [signer] }), crlOf(platformCa)] }), /signer of the TCB info/],
  ]
  for (const [change, reason] of cases) {
    const verdict = await tdx(change)
    assert.match(verdict, reason)
    assert.match(verdict, /^unreachable: /)
  }
})
