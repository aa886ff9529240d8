import assert from 'node:assert/strict'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { createSelfSigned } from './self-signed.ts'

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5)
const options = {
  name: 'plat resources',
  hosts: ['localhost', '127.0.0.1', '::1', '2001:db8::7:1'],
  notBefore: NOW,
  notAfter: Date.UTC(2051, 0, 1),
  serial: Buffer.from('00ff00', 'hex'),
}

test('a self-signed certificate is valid for every reader, with its names, time and key', () => {
  const { certificate, privateKey } = createSelfSigned(options)
  const read = new X509Certificate(certificate)
  assert.equal(read.subject, 'CN=plat resources')
  assert.equal(read.issuer, read.subject)
  assert.equal(read.ca, false)
  assert.equal(read.validFromDate.getTime(), NOW)
  assert.equal(read.validToDate.getTime(), options.notAfter)
  assert.equal(read.serialNumber, '0100FF00')
  assert.ok(read.verify(read.publicKey))
  assert.ok(read.checkPrivateKey(createPrivateKey(privateKey)))
  assert.deepEqual(read.keyUsage, ['1.3.6.1.5.5.7.3.1'])
  assert.equal(read.checkHost('localhost'), 'localhost')
  for (const address of options.hosts.slice(1)) assert.equal(read.checkIP(address), address)
  assert.equal(read.checkHost('other.example'), undefined)
  assert.equal(read.checkIP('127.0.0.2'), undefined)
})

test('two certificates have two keys', () => {
  assert.notEqual(createSelfSigned(options).privateKey, createSelfSigned(options).privateKey)
})

test('with a seed the certificate is the same each time, with another seed or name it is not', () => {
  const seeded = { ...options, seed: Buffer.alloc(32, 7) }
  const { certificate, privateKey } = createSelfSigned(seeded)
  assert.deepEqual(createSelfSigned(seeded), { certificate, privateKey })
  const read = new X509Certificate(certificate)
  assert.equal(read.publicKey.asymmetricKeyType, 'ed25519')
  assert.ok(read.verify(read.publicKey))
  assert.ok(read.checkPrivateKey(createPrivateKey(privateKey)))
  assert.notEqual(createSelfSigned({ ...seeded, seed: Buffer.alloc(32, 8) }).privateKey, privateKey)
  assert.notEqual(createSelfSigned({ ...seeded, name: 'other' }).certificate, certificate)
})
