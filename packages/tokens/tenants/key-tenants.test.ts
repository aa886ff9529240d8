import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '@plat/core'
import { testIssuer } from '@plat/testkit/identity'
import { testTenants } from '@plat/testkit/tokens/tenants'
import { createVerifier, isFault, joinSources, jwksSource, signJws, staticSource } from '../index.ts'

const NAMESPACES = { red: ['red-1', 'red-2'], blue: ['blue-1'] }
const OWNERS = { 'red-1': 'red', 'red-2': 'red', 'blue-1': 'blue', default: '' }
const { claims } = testIssuer()

function claimsOf(namespace: string): object {
  return claims({ sub: `spiffe://plat.local/ns/${namespace}/agent/assistant/session/s1`, plat_ns: namespace })
}

function sourceOf(document: () => object) {
  return jwksSource({
    url: 'http://broker/jwks',
    refreshSeconds: 300,
    dialer: { fetchBytes: async () => ({ status: 200, bytes: Buffer.from(JSON.stringify(document())) }) },
    clock: systemClock,
    log: { info: () => {}, warn: () => {} },
  })
}

const verifierOf = (keys: ReturnType<typeof sourceOf>) =>
  createVerifier({ keys, audience: 'plat-gateway', leewaySeconds: 0, clock: systemClock })

test('a key signs for the namespaces of its tenant, and that of the broker for those without a tenant', async (t) => {
  const { signers, document } = testTenants(NAMESPACES)
  const keys = sourceOf(() => document)
  t.after(() => keys.close())
  await keys.start()
  const verifier = verifierOf(keys)
  for (const [namespace, owner] of Object.entries(OWNERS)) {
    for (const [name, signer] of Object.entries(signers)) {
      const answer = await verifier.verify(signJws(signer, {}, claimsOf(namespace)))
      const what = `${namespace} signed by "${name}"`
      if (name === owner) assert.equal(isFault(answer) ? answer.message : answer.tenant, owner, what)
      else assert.equal(isFault(answer) && answer.reason, 'binding', what)
    }
  }
})

test('a namespace that moves to another tenant is refused with the previous key, also for cached tokens', async (t) => {
  const { signers, document } = testTenants(NAMESPACES)
  let current: object = document
  const keys = sourceOf(() => current)
  t.after(() => keys.close())
  await keys.start()
  const verifier = verifierOf(keys)
  const token = signJws(signers.red ?? assert.fail(), {}, claimsOf('red-1'))
  for (let count = 0; count < 3; count++) assert.equal(isFault(await verifier.verify(token)), false)
  current = { ...document, plat_tenants: { red: ['red-2'], blue: ['blue-1', 'red-1'] } }
  await keys.start()
  const answer = await verifier.verify(token)
  assert.equal(isFault(answer) && answer.reason, 'binding')
})

test('the tenant of a key applies whichever source has the key', async (t) => {
  const { signers, document } = testTenants(NAMESPACES)
  const documented = sourceOf(() => document)
  t.after(() => documented.close())
  const keys = joinSources([staticSource(Object.values(signers).map((one) => one.publicKey)), documented])
  await keys.start()
  const answer = await verifierOf(keys).verify(signJws(signers.red ?? assert.fail(), {}, claimsOf('blue-1')))
  assert.equal(isFault(answer) && answer.reason, 'binding')
})

test('a document with contradictory tenants is not used, and the previous keys stay', async (t) => {
  const { signers, document } = testTenants(NAMESPACES)
  const [key] = Object.values(document)[0]
  const wrong: Readonly<Record<string, object>> = {
    'a namespace of two tenants': { ...document, plat_tenants: { red: ['red-1'], blue: ['red-1'] } },
    'a key of an unknown tenant': { ...document, plat_tenants: {} },
    'tenants that are a list': { ...document, plat_tenants: [] },
    'namespaces that are a text': { ...document, plat_tenants: { red: 'red-1', blue: [] } },
    'a key of two tenants': { keys: [{ ...key, plat_tenant: 'red' }, key], plat_tenants: NAMESPACES },
  }
  for (const [name, bad] of Object.entries(wrong)) {
    let current: object = document
    const keys = sourceOf(() => current)
    t.after(() => keys.close())
    await keys.start()
    const { revision } = keys
    current = bad
    await keys.start()
    assert.equal(keys.revision, revision, name)
    assert.equal(keys.tenants.ofKey(signers.red?.kid ?? ''), 'red', name)
  }
})
