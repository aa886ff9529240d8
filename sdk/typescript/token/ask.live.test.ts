import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hostileDocuments, startDocumentServer } from '@plat/testkit/faults/documents'
import { denialIn } from '../denied/error.ts'
import { ask, IdentityRefusedError } from './ask.ts'

test('responses of the broker are strict JSON of at most 64 KiB', async (t) => {
  const { url, next } = await startDocumentServer(t)
  next({ token: 't' })
  assert.deepEqual(await ask({ fetch, url }), { token: 't' })
  for (const [fault, bytes] of hostileDocuments({ token: 't' }, 64 * 1024)) {
    next(bytes)
    await assert.rejects(ask({ fetch, url }), (error) => {
      assert.ok(error instanceof IdentityRefusedError, fault)
      assert.equal(error.message, 'the identity broker refused: HTTP 200', fault)
      return true
    })
  }
})

test('a refusal is read as strict JSON, and the body is left to be read', async () => {
  const refusal = { error: 'policy_denied', message: 'no', requestId: 'r' }
  const responseOf = (body: Uint8Array) =>
    new Response(new Uint8Array(body), { status: 403, headers: { 'content-type': 'application/json' } })
  const valid = responseOf(Buffer.from(JSON.stringify(refusal)))
  assert.equal((await denialIn(valid))?.code, 'policy_denied')
  assert.deepEqual(await valid.json(), refusal)
  for (const [fault, bytes] of hostileDocuments(refusal, 1024 * 1024))
    assert.equal(await denialIn(responseOf(bytes)), null, fault)
})
