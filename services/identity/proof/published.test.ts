import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { TestClock } from '@plat/core'
import type { Dialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { memoryOnceSets } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import { awsIidCheck } from './aws-iid.ts'
import { azureImdsCheck } from './azure-imds.ts'
import type { ProofVerdict } from './check.ts'
import { gcpIdentityCheck } from './gcp-identity.ts'
import { createFirstUse } from './parts/first-use.ts'
import { spiffeCheck } from './spiffe.ts'
import { context, proofOf } from './testing/suite.ts'
import { type Certificate, readPemCertificates } from './x509/certificate.ts'
import { leafSpiffeId } from './x509/svid.ts'

// Evidence published by others (fixtures/README.md), verified at its original time.

const dir = tempFolder()

const place = (name: string) => fileURLToPath(new URL(`fixtures/${name}`, import.meta.url))
const published = (name: string) => readFileSync(place(name), 'utf8')
const certificates = (name: string): readonly Certificate[] => readPemCertificates(published(name), name)

const DAY_MS = 24 * 3_600_000

/** Dependencies of a check at a time in the past; `files` is the whole network. */
function parts(at: string, files: ReadonlyMap<string, Uint8Array> = new Map()) {
  const clock = new TestClock(Date.parse(at))
  const none = () => assert.fail('no connection is needed')
  const dialer: Dialer = {
    client: none,
    connect: none,
    close: () => {},
    async fetchBytes(url) {
      const bytes = files.get(String(url))
      return { status: bytes === undefined ? 404 : 200, headers: {}, bytes: bytes ?? new Uint8Array() }
    },
  }
  return { clock, dialer, log: silentLog, firstUse: createFirstUse(memoryOnceSets(clock)) }
}

const reasonOf = (verdict: ProofVerdict) => (verdict.kind === 'established' ? verdict.substrate : verdict.reason)

/** Text whose character at `at` is another one of its alphabet. */
const changed = (text: string, at: number) => text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)

interface AwsChange {
  readonly accounts?: readonly string[]
  readonly windowMs?: number
  readonly document?: string
  readonly signature?: string
}

const message = published('aws-rsa2048.b64')

async function askAws(format: 'rsa2048' | 'signature', at: string, change: AwsChange = {}) {
  const raw = { document: published('aws-document.json'), signature: published('aws-signature.b64') }
  const { accounts = ['278576220453', '628783029487'], windowMs = DAY_MS, ...members } = change
  const check = awsIidCheck({ certificates: '', accounts, windowMs }, parts(at))
  const stated = format === 'rsa2048' ? { signature: message } : raw
  return reasonOf(await check.verify(proofOf('aws-iid', { format, ...stated, ...members }), context))
}

test('aws-iid: a published PKCS7 document of a real instance is verified with the shipped certificate', async () => {
  // Shows D1.proof.check.aws-iid.
  const at = '2021-09-03T22:00:00Z'
  assert.deepEqual(await askAws('rsa2048', at), {
    check: 'aws-iid',
    attestation: 'instance-identity-document',
    platform: 'aws',
    workload: 'accounts/278576220453/regions/us-west-2/instances/i-078517ca8a70a1dde',
  })
  assert.match(String(await askAws('rsa2048', '2021-09-05T00:00:00Z')), /too old/)
  assert.match(String(await askAws('rsa2048', at, { accounts: ['1'] })), /account/)
  const bytes = Buffer.from(message, 'base64').toString('latin1').replace('10.0.0.209', '10.0.0.208')
  const signature = Buffer.from(bytes, 'latin1').toString('base64')
  assert.match(String(await askAws('rsa2048', at, { signature })), /signature is wrong/)
})

test('aws-iid: a published document with its signature holds by the certificate that is shipped', async () => {
  // AWS made this certificate after the document, for the same key: only a long window brings both together.
  const windowMs = 3 * 365 * DAY_MS
  assert.deepEqual(await askAws('signature', '2024-05-01T00:00:00Z', { windowMs }), {
    check: 'aws-iid',
    attestation: 'instance-identity-document',
    platform: 'aws',
    workload: 'accounts/628783029487/regions/us-east-1/instances/i-076e9b91f7c420782',
  })
  assert.match(String(await askAws('signature', '2024-05-01T00:00:00Z')), /too old/)
  assert.match(String(await askAws('signature', '2022-03-25T21:00:00Z')), /certificate of the region has expired/)
  const document = published('aws-document.json').replace('628783029487', '278576220453')
  assert.match(String(await askAws('signature', '2024-05-01T00:00:00Z', { document })), /signature is wrong/)
})

test('aws-iid: each file of the shipped certificates is one of a region, and in force', () => {
  const folder = fileURLToPath(new URL('roots/aws', import.meta.url))
  const files = readdirSync(folder)
  assert.ok(files.length >= 33)
  for (const file of files) {
    assert.match(file, /^[a-z]{2}(-[a-z]+){1,2}-\d\.pem$/)
    for (const { x509, notAfter } of readPemCertificates(readFileSync(path.join(folder, file), 'latin1'), file)) {
      assert.equal(x509.publicKey.asymmetricKeyType, 'rsa', file)
      assert.ok(notAfter > Date.parse('2028-01-01'), file)
    }
  }
})

const azureDocument = published('azure-attested-document.b64')
const [issuing, root] = certificates('azure-issuers.pem')
assert.ok(issuing !== undefined && root !== undefined)
const microsoft = 'http://www.microsoft.com/pkiops/certs/Microsoft%20TLS%20'
const signerIssuer = [`${microsoft}G2%20RSA%20CA%20OCSP%2002.crt`, issuing.x509.raw] as const
const issuerIssuer = [`${microsoft}RSA%20Root%20G2%20-%20xsign.crt`, root.x509.raw] as const

async function askAzure(at: string, change: { files?: Map<string, Uint8Array>; signature?: string; nonce?: string }) {
  const { files = new Map([signerIssuer, issuerIssuer]), signature = azureDocument, nonce = '20260626-005645' } = change
  const subscriptions = ['05e8b285-4ce1-46a3-b4c9-f51ba67d6acc']
  const check = azureImdsCheck({ roots: '', issuers: 'http://www.microsoft.com', subscriptions }, parts(at, files))
  return reasonOf(await check.verify(proofOf('azure-imds', { signature, nonce }), context))
}

test('azure-imds: a published document of a real machine holds up to the pinned root, by the issuers that it names', async () => {
  // Shows D1.proof.check.azure-imds.
  const at = '2026-06-25T19:00:00Z'
  assert.deepEqual(await askAzure(at, {}), {
    check: 'azure-imds',
    attestation: 'attested-document',
    platform: 'azure',
    workload: 'subscriptions/05e8b285-4ce1-46a3-b4c9-f51ba67d6acc/virtualMachines/dc18de58-292f-4794-9a5d-a4192bad0039',
  })
  assert.match(String(await askAzure(at, { nonce: 'another' })), /another nonce/)
  assert.match(String(await askAzure('2026-06-26T01:00:00Z', {})), /document has expired/)
  assert.match(String(await askAzure('2026-11-20T00:00:00Z', {})), /certificate has expired/)
  assert.match(String(await askAzure(at, { files: new Map([signerIssuer]) })), /cannot be fetched/)
  assert.match(String(await askAzure(at, { signature: changed(azureDocument, 200) })), /message signature is wrong/)
})

const token = published('gcp-identity.jwt')
const [, claims = ''] = token.split('.')
const askGoogle = async (
  at: string,
  change: { audience?: string; nonce?: string; text?: string; project?: string },
) => {
  const { audience = 'agentcommunication.googleapis.com', nonce = '', text = token } = change
  const projects = [change.project ?? 'weipengpanda-project']
  const issuer = 'https://accounts.google.com'
  const check = gcpIdentityCheck({ keys: place('gcp-keys.json'), issuer, audience, projects }, parts(at))
  return reasonOf(await check.verify(proofOf('gcp-identity', { token: text, nonce }), context))
}

test("gcp-identity: a published token of a real instance holds by Google's key up to its audience, which carries no nonce", async () => {
  const at = '2025-02-12T02:00:00Z'
  // The audience is checked after signature and times: reaching it means that Google signed the token.
  assert.match(String(await askGoogle(at, {})), /another audience/)
  assert.match(String(await askGoogle('2025-02-12T03:00:00Z', {})), /expired/)
  assert.match(String(await askGoogle('2025-02-12T01:00:00Z', {})), /not valid yet/)
  const forged = Buffer.from(Buffer.from(claims, 'base64url').toString().replace('wi-test-vm-1', 'wi-test-vm-2'))
  const text = token.replace(claims, forged.toString('base64url'))
  assert.match(String(await askGoogle(at, { text })), /signature is wrong/)
})

const [svid, authority] = certificates('svid/good-leaf-and-intermediate.pem')
assert.ok(svid !== undefined && authority !== undefined)

function askSpiffe(at: string, leaf: Certificate) {
  const bundle = path.join(dir, 'bundle.json')
  const entry = { use: 'x509-svid', kty: 'EC', x5c: [authority?.x509.raw.toString('base64')] }
  writeFileSync(bundle, JSON.stringify({ keys: [entry] }))
  const ids = ['spiffe://example.org/*']
  const check = spiffeCheck({ bundles: new Map([['example.org', bundle]]), audience: 'a', ids }, parts(at))
  return check.verify(proofOf('spiffe', {}), { ...context, clientCertificate: leaf.x509.raw })
}

test('spiffe: an X.509-SVID that SPIRE issued holds under its authority, and none of the broken ones of go-spiffe is an SVID', async () => {
  // Shows D1.proof.check.spiffe.
  assert.deepEqual(reasonOf(await askSpiffe('2020-03-24T14:30:00Z', svid)), {
    check: 'spiffe',
    attestation: 'x509-svid',
    workload: 'spiffe://example.org/workload-1',
  })
  assert.match(String(reasonOf(await askSpiffe('2020-03-24T16:00:00Z', svid))), /certificate has expired/)
  assert.match(String(reasonOf(await askSpiffe('2020-03-24T14:30:00Z', authority))), /not a SPIFFE ID of a workload/)
  const wrong = readdirSync(place('svid')).filter((name) => name.startsWith('wrong-leaf'))
  assert.equal(wrong.length, 5)
  for (const name of wrong) {
    for (const leaf of certificates(`svid/${name}`)) assert.equal(typeof leafSpiffeId(leaf), 'string', name)
  }
})
