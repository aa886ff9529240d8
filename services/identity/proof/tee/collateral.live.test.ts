import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { systemClock } from '@plat/core'
import { createAuthority } from '@plat/testkit/authority'
import { startTestIdentity } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { type SnpOptions, snpReport } from '@plat/testkit/tee/snp'
import { QE_SIGNER, TD_MEASUREMENT, type TdxOptions, tcbInfo, tdxQuote } from '@plat/testkit/tee/tdx'
import { json } from '../../testing/broker.ts'
import { testCrl } from '../testing/crl.ts'

const HOUR_MS = 3_600_000
const MEASUREMENT = 'ab'.repeat(48)
const now = systemClock.now()
const dir = tempFolder()
/** Level of the microcode of the test's chip. */
const MICROCODE = 0x44

const amd = await createAuthority({ name: 'ARK', key: 'RSA', now })
const ask = await amd.issue({ name: 'ASK', key: 'RSA', ca: true })
const revokedAsk = await amd.issue({ name: 'ASK-2', key: 'RSA', ca: true })
const intel = await createAuthority({ name: 'Intel root', now })
const platformCa = await intel.issue({ name: 'Platform CA', ca: true })
const revokedCa = await intel.issue({ name: 'Platform CA 2', ca: true })
const signer = await intel.issue({ name: 'Intel SGX TCB Signing' })
const info = tcbInfo({
  ...{ signer, issuedAt: now - HOUR_MS, nextUpdate: now + HOUR_MS },
  levels: [
    [5, 'UpToDate'],
    [3, 'OutOfDate'],
  ],
})

function fileOf(name: string, content: string | Buffer): string {
  const file = path.join(dir, name)
  writeFileSync(file, content)
  return file
}

/** Flags of a list, once for each value. */
const each = (flag: string, values: readonly string[]) => values.flatMap((value) => [flag, value])

const broker = await startTestIdentity([
  ...['-identity-checks', 'tee'],
  ...['-tee-measurements', `sev-snp:${MEASUREMENT},tdx:${TD_MEASUREMENT}`],
  ...['-tee-snp-roots', fileOf('amd.pem', `${amd.pem}\n${ask.pem}\n${revokedAsk.pem}`)],
  ...['-tee-tdx-roots', fileOf('intel.pem', intel.pem), '-tee-tdx-qe-signer', QE_SIGNER],
  ...['-tee-snp-min-tcb', `microcode=${MICROCODE}`],
  ...each('-tee-snp-crls', [
    fileOf('ark.crl', testCrl(amd, { now, revoked: [revokedAsk] })),
    fileOf('ask.crl', testCrl(ask, { now })),
    fileOf('ask-2.crl', testCrl(revokedAsk, { now })),
  ]),
  ...each('-tee-tdx-crls', [
    fileOf('root.crl', testCrl(intel, { now, revoked: [revokedCa] })),
    fileOf('platform.crl', testCrl(platformCa, { now })),
    fileOf('platform-2.crl', testCrl(revokedCa, { now })),
  ]),
  ...['-tee-tdx-tcb-info', fileOf('tcb.json', info), '-tee-tdx-tcb-signer', fileOf('signer.pem', signer.pem)],
])
after(() => broker.stop())

async function post(where: string, body: object) {
  const headers = { authorization: `Bearer ${broker.brokerToken}`, 'content-type': 'application/json' }
  const response = await fetch(broker.url + where, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: await json(response) }
}

/** Mints a token for evidence about a new nonce. Returns the status and the error. */
async function mint(evidenceFor: (nonce: string) => Promise<object>): Promise<string> {
  const nonce = String((await post('/v1/proof/nonce', { check: 'tee' })).body.nonce)
  const proof = { check: 'tee', nonce, evidence: await evidenceFor(nonce) }
  const { status, body } = await post('/v1/token', { namespace: 'default', agent: 'a', session: 's', proof })
  return `${status} ${body.error ?? ''}`
}

const snp = (options: Partial<SnpOptions>) =>
  mint(async (nonce) => {
    const certificate = { notAfter: now + HOUR_MS, ...options.certificate }
    const { report, x5c } = await snpReport({ by: ask, nonce, measurement: MEASUREMENT, now, ...options, certificate })
    return { kind: 'sev-snp', report: report.toString('base64'), certificate: x5c }
  })

const tdx = (options: Partial<TdxOptions>) =>
  mint(async (nonce) => {
    const { quote } = await tdxQuote({ by: platformCa, above: [platformCa], nonce, ...options })
    return { kind: 'tdx', quote: quote.toString('base64') }
  })

test('a broker mints nothing for an SEV-SNP machine that may migrate or be debugged, or is outdated or revoked', async () => {
  assert.equal(await snp({}), '200 ')
  const policy = (at: number, byte: number) => ({ report: (bytes: Buffer) => void bytes.fill(byte, at, at + 1) })
  assert.match(await snp(policy(0x0a, 0x04)), /^403 proof failed: .*migration agent/)
  assert.match(await snp(policy(0x0a, 0x08)), /^403 proof failed: .*debug/)
  const below = (bytes: Buffer) => void bytes.fill(MICROCODE - 1, 0x187, 0x188)
  const outdated = { certificate: { ucode: MICROCODE - 1 }, report: below }
  assert.match(await snp(outdated), /^403 proof failed: .*microcode .*minimum/)
  assert.match(await snp({ by: revokedAsk }), /^403 proof failed: CN=ASK-2 is revoked/)
})

test('a broker mints nothing for a TDX machine that may be debugged, or is outdated or revoked', async () => {
  assert.equal(await tdx({}), '200 ')
  assert.match(await tdx({ quote: (bytes) => void bytes.fill(0, 48 + 123, 48 + 124) }), /^403 .*SEPT_VE_DISABLE/)
  assert.match(await tdx({ quote: (bytes) => void bytes.fill(1, 48 + 120, 48 + 121) }), /^403 .*debug/)
  assert.match(await tdx({ svn: 4 }), /^403 proof failed: the TCB status OutOfDate/)
  assert.match(await tdx({ svn: 2 }), /^403 proof failed: the platform is below every TCB level/)
  assert.match(await tdx({ by: revokedCa, above: [revokedCa] }), /^403 proof failed: .*Platform CA 2 is revoked/)
})
