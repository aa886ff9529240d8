import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { type CmsOptions, createAuthority, signedMessage } from '@plat/testkit/authority'
import { tempFolder } from '@plat/testkit/local'
import { awsIidCheck } from './aws-iid.ts'
import type { Proof, Substrate } from './check.ts'
import { type Attempt, context, proofCheckSuite, proofOf, testParts } from './testing/suite.ts'

const dir = tempFolder()

const HOUR_MS = 3_600_000
const NOW = testParts().clock.now()
const region = await createAuthority({ name: 'region', key: 'RSA', now: NOW })
const elsewhere = await createAuthority({ name: 'elsewhere', key: 'RSA', now: NOW })
const old = await createAuthority({ name: 'old', key: 'RSA', now: NOW, notBefore: NOW - 2000, notAfter: NOW - 1000 })
writeFileSync(path.join(dir, 'eu-west-1.pem'), region.pem)
writeFileSync(path.join(dir, 'us-east-1.pem'), elsewhere.pem)
writeFileSync(path.join(dir, 'eu-north-1.pem'), old.pem)

const substrate: Substrate = {
  check: 'aws-iid',
  attestation: 'instance-identity-document',
  platform: 'aws',
  workload: 'accounts/123456789012/regions/eu-west-1/instances/i-1234567890abcdef0',
}

const fields = {
  devpayProductCodes: null,
  privateIp: '10.0.0.9',
  accountId: '123456789012',
  region: 'eu-west-1',
  instanceId: 'i-1234567890abcdef0',
  pendingTime: new Date(NOW - HOUR_MS).toISOString().replace('.000', ''),
  version: '2017-09-30',
}

const documentOf = (change: object = {}) => JSON.stringify({ ...fields, ...change }, null, 2)

function requested(members: Partial<Proof>, { accounts = ['123456789012=default'], folder = dir } = {}): Attempt {
  const check = awsIidCheck({ certificates: folder, accounts, windowMs: 24 * HOUR_MS }, testParts())
  return { check, proof: proofOf('aws-iid', members) }
}

/** A document of these fields, signed as AWS signs in its form `signature`. */
function raw(change: object = {}, key = region.privateKey) {
  const document = documentOf(change)
  return { format: 'signature', document, signature: sign('sha256', Buffer.from(document), key).toString('base64') }
}

/** The same in its form `rsa2048`. */
function message(overrides: Partial<CmsOptions> = {}, change: object = {}) {
  const content = Buffer.from(documentOf(change))
  return {
    format: 'rsa2048',
    signature: signedMessage({ content, signers: [region], ...overrides }).toString('base64'),
  }
}

const refused = (reason: RegExp, ask: () => Attempt) => ({ reason, ask })
const common = {
  'a document of another account': refused(/account/, () => requested(raw(), { accounts: ['999999999999'] })),
  'an account of other namespaces': refused(/account/, () => requested(raw(), { accounts: ['123456789012=prod'] })),
  'an instance that will be launched': refused(/too old/, () =>
    requested(raw({ pendingTime: new Date(NOW + HOUR_MS).toISOString().replace('.000', '') })),
  ),
  'a region without certificate': refused(/region/, () => requested(raw({ region: 'ap-south-1' }))),
  'a region that is a path': refused(/not an instance/, () => requested(raw({ region: '../eu-west-1' }))),
  'a document that says a field twice': refused(/not an instance/, () => {
    const document = documentOf().replace('{', '{"accountId":"999999999999",')
    const signature = sign('sha256', Buffer.from(document), region.privateKey).toString('base64')
    return requested({ format: 'signature', document, signature })
  }),
  'the form that is signed with SHA-1': refused(/SHA-1/, () => requested({ ...raw(), format: 'pkcs7' })),
  'a certificate that has run out': refused(/expired/, () => requested(raw({ region: 'eu-north-1' }, old.privateKey))),
}

proofCheckSuite({
  name: 'aws-iid, signature',
  substrate,
  accepted: () => requested(raw()),
  async replayed() {
    const first = requested(raw())
    return [first, { ...first, context: { ...context, session: 's2' } }]
  },
  tampered: () => requested({ ...raw(), document: documentOf({ privateIp: '10.0.0.10' }) }),
  wrongAnchor: () => requested(raw({ region: 'us-east-1' })),
  expired: () => requested(raw({ pendingTime: new Date(NOW - 25 * HOUR_MS).toISOString().replace('.000', '') })),
  unreachable: () => requested(raw(), { folder: path.join(dir, 'missing') }),
  refused: common,
})

proofCheckSuite({
  name: 'aws-iid, rsa2048',
  substrate,
  accepted: () => requested({ ...message({ indefinite: true }), document: documentOf() }),
  async replayed() {
    const first = requested(message())
    return [first, { ...first, context: { ...context, namespace: 'default', agent: 'another' } }]
  },
  tampered: () => requested(message({ messageDigest: Buffer.alloc(32) })),
  wrongAnchor: () => requested(message({ signers: [elsewhere] })),
  expired: () => requested(message({}, { pendingTime: '2025-12-01T00:00:00Z' })),
  unreachable: () => requested(message(), { folder: path.join(dir, 'missing') }),
  refused: {
    'another document beside the signed one': refused(/not the content/, () =>
      requested({ ...message(), document: documentOf({ accountId: '999999999999' }) }),
    ),
    'two signers': refused(/one RSA signer/, () => requested(message({ signers: [region, elsewhere] }))),
    'no signer': refused(/one RSA signer/, () => requested(message({ signers: [] }))),
    'a message that carries the right certificate and another one signed': refused(/signature/, () =>
      requested(message({ signers: [elsewhere], certificates: [region, elsewhere] })),
    ),
    'a signer that names another certificate than its own': refused(/signature/, () =>
      requested(message({ signerName: elsewhere })),
    ),
    'a digest of SHA-1': refused(/one RSA signer/, () => requested(message({ digestOid: '1.3.14.3.2.26' }))),
  },
})

test('aws-iid: a message without signed attributes is one as well', async () => {
  // Shows D1.proof.check.aws-iid.
  const { check, proof } = requested(message({ signedAttributes: false }))
  assert.equal((await check.verify(proof, context)).kind, 'established')
})
