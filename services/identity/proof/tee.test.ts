import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createAuthority, type Issued } from '@plat/testkit/authority'
import { tempFolder } from '@plat/testkit/local'
import { type SnpOptions, snpReport } from '@plat/testkit/tee/snp'
import { QE_SIGNER, TD_MEASUREMENT, type TdxOptions, tdxQuote } from '@plat/testkit/tee/tdx'
import { verifySnp } from './tee/snp.ts'
import { INTEL_QE_SIGNER, verifyTdx } from './tee/tdx.ts'
import { teeCheck } from './tee.ts'
import { type Attempt, context, NONCE, proofCheckSuite, proofOf, testParts } from './testing/suite.ts'
import { readCertificate, readPemCertificates } from './x509/certificate.ts'

const dir = tempFolder()
const NOW = testParts().clock.now()
const published = (name: string) => readFileSync(new URL(`fixtures/${name}`, import.meta.url))
const shipped = (name: string) =>
  readPemCertificates(readFileSync(new URL(`roots/${name}`, import.meta.url), 'latin1'), name)

const amd = await createAuthority({ name: 'ARK', key: 'RSA', now: NOW })
const intel = await createAuthority({ name: 'root', now: NOW })
const stranger = await createAuthority({ name: 'ARK', key: 'RSA', now: NOW })
writeFileSync(path.join(dir, 'amd.pem'), amd.pem)
writeFileSync(path.join(dir, 'intel.pem'), intel.pem)
const MEASUREMENT = 'ab'.repeat(48)

function ask(
  evidence: object,
  { roots = dir, measurements = [`sev-snp:${MEASUREMENT}`, `tdx:${TD_MEASUREMENT}`] } = {},
): Attempt {
  const settings = {
    snpRoots: path.join(roots, 'amd.pem'),
    tdxRoots: path.join(roots, 'intel.pem'),
    tdxQeSigner: QE_SIGNER,
    measurements,
    ...{ snpMinTcb: new Map(), snpAllowMigrationAgent: false, tdxAllowSeptVe: false },
    collateral: {
      ...{ snpCrls: [], tdxCrls: [], tcbInfos: [], tcbSigner: '', tcbStatuses: new Set<string>() },
      maxAgeMs: 0,
    },
  }
  return { check: teeCheck(settings, testParts()), proof: proofOf('tee', { nonce: NONCE, evidence }) }
}

interface SnpChange extends Pick<SnpOptions, 'certificate' | 'report'> {
  readonly by?: Issued
  readonly after?: (bytes: Buffer) => void
}

async function snp({ by = amd, after: edit = () => {}, ...overrides }: SnpChange = {}, options = {}) {
  const { report, x5c } = await snpReport({ by, nonce: NONCE, measurement: MEASUREMENT, now: NOW, ...overrides })
  edit(report)
  return ask({ kind: 'sev-snp', report: report.toString('base64'), certificate: x5c }, options)
}

interface TdxChange extends Partial<TdxOptions> {
  readonly after?: (bytes: Buffer) => void
}

async function tdx(change: TdxChange = {}, options = {}): Promise<Attempt> {
  const { quote } = await tdxQuote({ by: intel, nonce: NONCE, ...change })
  change.after?.(quote)
  return ask({ kind: 'tdx', quote: quote.toString('base64') }, options)
}

const flip = (at: number) => (bytes: Buffer) => {
  bytes[at] = (bytes[at] ?? 0) ^ 1
}
const again = async (first: Attempt): Promise<readonly [Attempt, Attempt]> => [
  first,
  { ...first, proof: { ...first.proof, nonce: 'ANOTHER' } },
]

proofCheckSuite({
  name: 'tee, SEV-SNP',
  substrate: { check: 'tee', attestation: 'sev-snp', isolation: 'tee', digest: MEASUREMENT },
  accepted: () => snp(),
  replayed: async () => again(await snp()),
  tampered: () => snp({ after: flip(0x90) }),
  wrongAnchor: () => snp({ by: stranger }),
  expired: () => snp({ certificate: { notAfter: NOW - 1000 } }),
  unreachable: () => snp({}, { roots: path.join(dir, 'missing') }),
  refused: {
    'a machine that allows debugging': {
      reason: /debugging/,
      ask: () => snp({ report: (bytes) => bytes.fill(8, 0x0a, 0x0b) }),
    },
    'a machine that a migration agent may move': {
      reason: /migration agent/,
      ask: () => snp({ report: (bytes) => bytes.fill(4, 0x0a, 0x0b) }),
    },
    'a report of another chip': { reason: /another chip/, ask: () => snp({ report: flip(0x1a0) }) },
    'a certificate of another patch level': { reason: /patch level/, ask: () => snp({ certificate: { ucode: 0xd1 } }) },
    'a report of a less privileged level': { reason: /privileged/, ask: () => snp({ report: flip(0x30) }) },
    'a report of an unknown version': { reason: /version/, ask: () => snp({ report: flip(0x01) }) },
    'bits in the unused part of the signature': { reason: /signature/, ask: () => snp({ after: flip(0x2a0 + 50) }) },
    'a measurement that is not listed': { reason: /launched/, ask: () => snp({}, { measurements: ['sev-snp:00'] }) },
    'a measurement of the other kind': {
      reason: /launched/,
      ask: () => snp({}, { measurements: [`tdx:${MEASUREMENT}`] }),
    },
    'a report with something behind it': {
      reason: /size/,
      ask: async () => {
        const { check, proof } = await snp()
        const { report = '', ...rest }: { report?: string } = Object(proof.evidence)
        const longer = Buffer.concat([Buffer.from(report, 'base64'), Buffer.from([0])]).toString('base64')
        return { check, proof: { ...proof, evidence: { ...rest, report: longer } } }
      },
    },
    'a report of another signature algorithm': {
      reason: /algorithm/,
      ask: () => snp({ report: (bytes) => void bytes.writeUInt32LE(2, 0x34) }),
    },
    'a key of another kind than chips have': {
      reason: /signature/,
      ask: () => snp({ certificate: { key: 'RSA-768' } }),
    },
    'a certificate without chip for a report that is not of a cloud': {
      reason: /another chip/,
      ask: () => snp({ certificate: { id: null } }),
    },
    'no evidence': { reason: /kind/, ask: () => ask({ kind: 'sgx' }) },
    'evidence of another type': { reason: /base64/, ask: () => ask({ kind: 'sev-snp', report: 1 }) },
  },
})

proofCheckSuite({
  name: 'tee, TDX',
  substrate: { check: 'tee', attestation: 'tdx', isolation: 'tee', digest: TD_MEASUREMENT },
  accepted: () => tdx(),
  replayed: async () => again(await tdx()),
  tampered: () => tdx({ after: flip(48 + 136) }),
  wrongAnchor: async () => tdx({ by: await createAuthority({ name: 'root', now: NOW }) }),
  expired: () => tdx({ notAfter: NOW - 1000 }),
  unreachable: () => tdx({}, { roots: path.join(dir, 'missing') }),
  refused: {
    'a machine that allows debugging': {
      reason: /machine allows debugging/,
      ask: () => tdx({ quote: flip(48 + 120) }),
    },
    'a machine without SEPT_VE_DISABLE': {
      reason: /SEPT_VE_DISABLE/,
      ask: () => tdx({ quote: (bytes) => bytes.fill(0, 48 + 123, 48 + 124) }),
    },
    'a module that is not that of Intel': { reason: /module/, ask: () => tdx({ quote: flip(48 + 64) }) },
    'a module with its own attributes': { reason: /module/, ask: () => tdx({ quote: flip(48 + 112) }) },
    'a chain of more certificates than there can be': { reason: /cannot be read/, ask: () => tdx({ copies: 5 }) },
    'an enclave of another signer': { reason: /another signer/, ask: () => tdx({ enclave: flip(128) }) },
    'an enclave of another product': { reason: /another product/, ask: () => tdx({ enclave: flip(256) }) },
    'an enclave that allows debugging': {
      reason: /enclave allows/,
      ask: () => tdx({ enclave: (b) => b.fill(2, 48, 49) }),
    },
    'a key that the enclave does not name': {
      reason: /not that of the enclave/,
      ask: () => tdx({ enclave: flip(320) }),
    },
    'a quote of another signature algorithm': { reason: /only quotes of TDX/, ask: () => tdx({ quote: flip(2) }) },
    'a quote that is not of TDX': {
      reason: /only quotes of TDX/,
      ask: () => tdx({ quote: (bytes) => void bytes.writeUInt32LE(0, 4) }),
    },
    'an enclave whose report was changed': {
      reason: /signature of the quoting enclave/,
      ask: () => tdx({ after: flip(632 + 4 + 64 + 64 + 6) }),
    },
    'a key of another kind than platforms have': { reason: /no platform/, ask: () => tdx({ key: 'RSA-512' }) },
    'a quote of another version': { reason: /version 4/, ask: () => tdx({ after: flip(0) }) },
    'a quote cut short': {
      reason: /shape/,
      ask: () => tdx({ after: (bytes) => void bytes.writeUInt32LE(2 ** 31, 632) }),
    },
    'other registers': { reason: /launched/, ask: () => tdx({ quote: flip(48 + 400) }) },
  },
})

const snpRules = (roots: string) => ({
  ...{ roots: shipped(roots), minTcb: new Map(), allowMigrationAgent: false, now: NOW },
})

test('tee: a published report of a real AMD chip is genuine up to the shipped roots, and refused for debugging', () => {
  const certificate = readCertificate(published('sev-snp-vcek.der')) ?? assert.fail('no certificate')
  const report = published('sev-snp-report.bin')
  // Debugging is checked after path and signature: reaching it means that the report is signed.
  assert.equal(verifySnp({ report, certificate }, snpRules('amd.pem')), 'the machine allows debugging')
  assert.match(String(verifySnp({ report, certificate }, snpRules('intel.pem'))), /no anchor/)
  flip(0x50)(report)
  assert.equal(verifySnp({ report, certificate }, snpRules('amd.pem')), 'the report signature is wrong')
})

/** The published quote without the text that its publisher put behind it. */
const publishedQuote = () => published('tdx-quote.bin').subarray(0, 4935)

test('tee: a published quote of a real Intel machine holds up to the shipped root', () => {
  const rules = { roots: shipped('intel.pem'), qeSigner: INTEL_QE_SIGNER, allowSeptVe: true, now: NOW }
  const quote = verifyTdx(publishedQuote(), rules)
  assert.ok(typeof quote === 'object', String(quote))
  assert.deepEqual([quote.reportData.length, quote.measurement.length], [64, 96])
  assert.match(String(verifyTdx(publishedQuote(), { ...rules, roots: shipped('amd.pem') })), /no anchor/)
  assert.match(String(verifyTdx(published('tdx-quote.bin'), rules)), /shape/)
})

test('tee: no change of one byte of a quote goes unnoticed where it is signed', () => {
  const rules = { roots: shipped('intel.pem'), qeSigner: INTEL_QE_SIGNER, allowSeptVe: true, now: NOW }
  const bytes = publishedQuote()
  assert.equal(typeof verifyTdx(bytes, rules), 'object')
  for (let at = 0; at < 632; at += 37) {
    const changed = Buffer.from(bytes)
    flip(at)(changed)
    assert.equal(typeof verifyTdx(changed, rules), 'string', `byte ${at}`)
  }
})

test('tee: the certificate of a cloud names no chip, and that of a newer chip has its levels in another order', async () => {
  const byCloud = (bytes: Buffer) => void bytes.writeUInt32LE(1 << 2, 0x48)
  const levels = { 9: 2, 1: 3, 2: 4, 3: 5, 8: 0x44 }
  const newer = (bytes: Buffer) => void Buffer.from([2, 3, 4, 5, 0, 0, 0, 0x44]).copy(bytes, 0x180)
  for (const change of [
    { certificate: { id: null }, report: byCloud },
    { certificate: { levels }, report: newer },
  ]) {
    const { check, proof } = await snp(change)
    assert.deepEqual((await check.verify(proof, context)).kind, 'established')
  }
})

test('tee: evidence is judged for the session that is minted', async () => {
  // Shows D1.proof.check.tee.
  const { check, proof } = await snp({}, { measurements: [`sev-snp:${MEASUREMENT}=prod`] })
  assert.equal((await check.verify(proof, context)).kind, 'failed')
  assert.equal((await check.verify(proof, { ...context, namespace: 'prod' })).kind, 'established')
  const copied = await tdx({ copies: 4 })
  assert.equal((await copied.check.verify(copied.proof, context)).kind, 'established')
})
