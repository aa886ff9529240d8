import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plainResponse } from './plain-response.ts'

function read(status: number, answer: object): [number, unknown] {
  const { status: plainStatus, bytes } = plainResponse(status, Buffer.from(JSON.stringify(answer)))
  return [plainStatus, JSON.parse(Buffer.from(bytes).toString())]
}

test('errors with status 200 become errors, and provider-specific values those of RFC 6749', () => {
  assert.deepEqual(read(200, { error: 'bad_verification_code', error_description: 'x' }), [
    400,
    { error: 'bad_verification_code' },
  ])
  assert.deepEqual(read(200, { ok: false, error: 'invalid_code' }), [400, { error: 'invalid_code' }])
  assert.deepEqual(read(200, { ok: true, access_token: 'xoxp', token_type: 'user', scope: 'a,b' }), [
    200,
    { access_token: 'xoxp', token_type: 'Bearer', scope: 'a,b' },
  ])
  assert.deepEqual(read(200, { access_token: 'a', token_type: 'bearer', id_token: 'x', instance_url: 'y' }), [
    200,
    { access_token: 'a', token_type: 'bearer' },
  ])
  assert.deepEqual(read(401, { error: 'invalid_client' }), [401, { error: 'invalid_client' }])
})

test('responses that are not strict JSON objects are unchanged', () => {
  for (const text of ['', '[]', 'null', 'access_token=a', '{"a":1,"a":2}']) {
    const bytes = Buffer.from(text)
    assert.deepEqual(plainResponse(200, bytes), { status: 200, bytes })
  }
})
