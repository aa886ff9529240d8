import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CmsOptions, createAuthority, type KeyKind, signedMessage } from '@plat/testkit/authority'
import { readCertificate } from '../x509/certificate.ts'
import { readSignedData } from './signed-data.ts'

const NOW = Date.UTC(2026, 0, 1)
const content = Buffer.from('what was signed')
const signer = await createAuthority({ name: 'signer', key: 'RSA', now: NOW })
const message = (overrides: Partial<CmsOptions> = {}) =>
  readSignedData(signedMessage({ content, signers: [signer], ...overrides }))

/** Does a message of these wishes count as signed by its signer? Null: it cannot be read. */
function isSigned(overrides: Partial<CmsOptions> = {}, by = signer): boolean | null {
  const { x509 } = readCertificate(by.der) ?? assert.fail('the signer cannot be read')
  return message({ ...overrides, signers: [by] })?.signedBy(x509) ?? null
}

test('RSA of 2048 bits and SHA-256 sign, and nothing weaker or else', async () => {
  assert.equal(isSigned(), true)
  const other = (key: KeyKind) => createAuthority({ name: 'signer', key, now: NOW })
  assert.equal(isSigned({}, await other('RSA-1024')), false)
  assert.equal(isSigned({}, await other('P-256')), false)
  assert.equal(isSigned({ digestOid: '1.3.14.3.2.26' }), null)
})

test('a signature algorithm of another name is not read', () => {
  assert.equal(isSigned({ signatureOid: '1.2.840.113549.1.1.11' }), true)
  for (const oid of ['1.2.840.113549.1.1.5', '1.2.840.113549.1.1.10', '1.2.840.10045.4.3.2']) {
    assert.equal(isSigned({ signatureOid: oid }), null, oid)
  }
})

test('signed attributes that do not match the content are refused', () => {
  assert.equal(isSigned({ contentTypeOid: '1.2.840.113549.1.7.2' }), false)
  assert.equal(isSigned({ messageDigest: Buffer.alloc(32) }), false)
})

test('a message carries ten certificates at most', () => {
  const copies = (count: number) => Array.from({ length: count }, () => signer)
  assert.equal(message({ certificates: copies(10) })?.certificates.length, 10)
  assert.equal(message({ certificates: copies(11) }), null)
})
