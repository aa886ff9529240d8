import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { type CmsOptions, createAuthority, der, derOid, keyUsage, signedMessage } from '@plat/testkit/authority'
import { listening } from '@plat/testkit/local'
import { azureImdsCheck } from './azure-imds.ts'
import { type Attempt, context, NONCE, proofCheckSuite, proofOf, testParts } from './testing/suite.ts'

const dir = mkdtempSync(path.join(os.tmpdir(), 'plat-'))
const NOW = testParts().clock.now()
const root = await createAuthority({ name: 'root', key: 'RSA', now: NOW })
const roots = path.join(dir, 'roots.pem')
writeFileSync(roots, root.pem)
const middle = await root.issue({ name: 'issuing CA', key: 'RSA', ca: 0 })

const paths: (string | undefined)[] = []
const server = createServer((request, response) => {
  paths.push(request.url)
  if (request.url === '/middle.crt') response.end(middle.der)
  else if (request.url === '/circle.crt') response.end(circle.der)
  else if (request.url === '/moved.crt') response.writeHead(302, { location: '/middle.crt' }).end()
  else response.writeHead(404).end()
})
const port = await listening(server)
after(() => {
  server.close()
  server.closeAllConnections()
  rmSync(dir, { recursive: true })
})
const origin = `http://127.0.0.1:${port}`

/** The extension that says where the issuer's certificate is to be had. */
const issuerAt = (url: string) => ({
  oid: '1.3.6.1.5.5.7.1.1',
  critical: false,
  value: der(0x30, der(0x30, derOid('1.3.6.1.5.5.7.48.2'), der(0x86, Buffer.from(url)))),
})

const overrides = {
  name: 'metadata',
  key: 'RSA',
  dnsNames: ['metadata.azure.com', 'westeurope.metadata.azure.com'],
} as const
const circle = await createAuthority({
  name: 'circle',
  key: 'RSA',
  now: NOW,
  extensions: [issuerAt(`${origin}/circle.crt`)],
})
const signer = await middle.issue(overrides)
const other = await middle.issue({ ...overrides, name: 'other' })

const content = (change: object = {}) =>
  Buffer.from(
    JSON.stringify({
      nonce: NONCE,
      vmId: '02aab8a4-74ef-476e-8182-f6d2ba4166a6',
      subscriptionId: '8d10da13-8125-4ba9-a717-bf7490507b3d',
      sku: '22_04-lts',
      plan: { name: '', product: '', publisher: '' },
      timeStamp: { createdOn: '12/31/25 23:00:00 -0000', expiresOn: '01/01/26 05:00:00 -0000' },
      ...change,
    }),
  )

interface Change extends Partial<CmsOptions> {
  readonly fields?: object
  readonly rootsFile?: string
  readonly subscriptions?: readonly string[]
}

function attempt({ fields, rootsFile = roots, subscriptions, ...message }: Change = {}): Attempt {
  const allowed = subscriptions ?? ['8d10da13-8125-4ba9-a717-bf7490507b3d']
  const check = azureImdsCheck({ roots: rootsFile, issuers: origin, subscriptions: allowed }, testParts())
  const signers = [signer]
  const bytes = signedMessage({ content: content(fields), signers, certificates: [signer, middle], ...message })
  return { check, proof: proofOf('azure-imds', { nonce: NONCE, signature: bytes.toString('base64') }) }
}

const refused = (reason: RegExp, change: Change) => ({ reason, ask: () => attempt(change) })
const strangerRoot = await createAuthority({ name: 'root', key: 'RSA', now: NOW })
const stranger = await strangerRoot.issue(overrides)
const namedElse = await middle.issue({ ...overrides, dnsNames: ['metadata.azure.com.evil.example'] })
const both = keyUsage.digitalSignature | keyUsage.keyCertSign
const authority = await middle.issue({ ...overrides, name: 'ca', ca: true, keyUsage: both })
const forKeys = await middle.issue({ ...overrides, keyUsage: keyUsage.keyEncipherment })

proofCheckSuite({
  name: 'azure-imds',
  substrate: {
    check: 'azure-imds',
    attestation: 'attested-document',
    platform: 'azure',
    workload: 'subscriptions/8d10da13-8125-4ba9-a717-bf7490507b3d/virtualMachines/02aab8a4-74ef-476e-8182-f6d2ba4166a6',
  },
  accepted: () => attempt(),
  async replayed() {
    const first = attempt()
    return [first, { ...first, proof: { ...first.proof, nonce: 'ANOTHER' } }]
  },
  tampered: () => attempt({ messageDigest: Buffer.alloc(32) }),
  wrongAnchor: () => attempt({ signers: [stranger], certificates: [stranger, strangerRoot] }),
  expired: () => attempt({ fields: { timeStamp: { expiresOn: '12/31/25 23:59:59 -0000' } } }),
  unreachable: () => attempt({ rootsFile: path.join(dir, 'missing') }),
  refused: {
    'a trusted certificate in the bag while a stranger signed': refused(/no anchor/, {
      signers: [stranger],
      certificates: [signer, middle, stranger],
    }),
    'two signers': refused(/one RSA signer/, { signers: [signer, other] }),
    'a signer of another name': refused(/not that of Azure/, {
      signers: [namedElse],
      certificates: [namedElse, middle],
    }),
    'a signer that is an authority': refused(/may not sign/, {
      signers: [authority],
      certificates: [authority, middle],
    }),
    'a signer whose key is for other things': refused(/may not sign/, {
      signers: [forKeys],
      certificates: [forKeys, middle],
    }),
    'a subscription that is not listed': refused(/subscription/, { subscriptions: ['another'] }),
    'a document without nonce': refused(/nonce/, { fields: { nonce: undefined } }),
    'a document without end': refused(/not an attested document/, { fields: { timeStamp: {} } }),
  },
})

test('azure-imds: the digest by the name that Azure writes is SHA-256', async () => {
  // Shows D1.proof.check.azure-imds.
  const { check, proof } = attempt({ digestOid: '1.2.840.113549.1.1.11' })
  assert.equal((await check.verify(proof, context)).kind, 'established')
})

test('azure-imds: an issuer that is not in the message is fetched from the one allowed origin, once, without redirects', async () => {
  const at = async (url: string) => {
    const leaf = await middle.issue({ ...overrides, extensions: [issuerAt(url)] })
    return attempt({ signers: [leaf], certificates: [leaf] })
  }
  const kind = async ({ check, proof }: Attempt) => (await check.verify(proof, context)).kind
  const good = await at(`${origin}/middle.crt`)
  assert.deepEqual([await kind(good), await kind(good), paths], ['established', 'established', ['/middle.crt']])
  assert.equal(await kind(await at(`${origin}/moved.crt`)), 'unreachable')
  assert.equal(await kind(await at(`${origin}/missing.crt`)), 'unreachable')
  assert.equal(await kind(await at(`http://localhost:${new URL(origin).port}/middle.crt`)), 'failed')
  assert.equal(await kind(await at(`http://user@${new URL(origin).host}/middle.crt`)), 'failed')
  assert.deepEqual(paths, ['/middle.crt', '/moved.crt', '/missing.crt'])
})

test('azure-imds: an issuer that says it is its own is not followed without end', async () => {
  const leaf = await circle.issue({ ...overrides, extensions: [issuerAt(`${origin}/circle.crt`)] })
  const { check, proof } = attempt({ signers: [leaf], certificates: [leaf] })
  assert.deepEqual(await check.verify(proof, context), {
    kind: 'failed',
    reason: 'the certificate leads to no anchor that is trusted',
  })
})

test('azure-imds: without a file the roots are those that Azure documents, out of what Node ships', async () => {
  const { check, proof } = attempt({ rootsFile: '' })
  assert.deepEqual(await check.verify(proof, context), {
    kind: 'failed',
    reason: 'the certificate leads to no anchor that is trusted',
  })
})
