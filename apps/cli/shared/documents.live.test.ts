import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reasonOf } from '@plat/core'
import { DOCUMENT_MARK, hostileDocuments, startDocumentServer } from '@plat/testkit/faults/documents'
import { admin } from './admin-api.ts'
import { mint } from './broker.ts'

const MINTED = { token: 't', expiresAt: '2026-01-01T00:00:00Z', spiffeId: 's', jti: 'j' }
const REQUEST = { namespace: 'n', agent: 'a', session: 's', user: 'u', scopes: [], tier: 't', ttlSeconds: 60 }

test('commands accept only strict JSON of the broker and of the admin API', async (t) => {
  const { url, next } = await startDocumentServer(t)
  const env = { PLAT_GATEWAY_URL: url, PLAT_ADMIN_URL: url, PLAT_IDENTITY_URL: url }
  const tokens = { PLAT_BROKER_TOKEN: 'b', PLAT_ADMIN_TOKEN: 'a' }
  next(MINTED)
  assert.deepEqual(await mint(url, 'b', REQUEST), MINTED)
  assert.deepEqual(await admin({ ...env, ...tokens }, 'GET', '/v1/whoami'), MINTED)
  for (const [fault, bytes] of hostileDocuments(MINTED, 64 * 1024)) {
    next(bytes)
    const outcome = await mint(url, 'b', REQUEST).then(() => 'ok', reasonOf)
    assert.match(outcome, /^the identity broker refused: .{1,200}$/, fault)
    assert.ok(!outcome.includes(DOCUMENT_MARK), fault)
    // Its callers check the shape.
    if (['an array', 'a text', 'too many bytes'].includes(fault)) continue
    assert.equal(await admin({ ...env, ...tokens }, 'GET', '/v1/whoami'), null, fault)
  }
})
