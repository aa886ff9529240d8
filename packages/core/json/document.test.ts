import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DOCUMENT_MARK, hostileDocuments } from '@plat/testkit/faults/documents'
import { readBody, readJson, readJsonObject, readUtf8 } from './document.ts'

test('a document of another party is one JSON object in UTF-8, or nothing', () => {
  const valid = { a: 1, __proto__: 2, b: { c: 'ü' } }
  assert.deepEqual(readJsonObject(Buffer.from(JSON.stringify(valid))), valid)
  for (const [name, bytes] of hostileDocuments({ a: 1 }, 10)) {
    const isObject = name === 'too many bytes'
    assert.equal(readJsonObject(bytes)?.['x-mark'], isObject ? DOCUMENT_MARK : undefined, name)
  }
  assert.deepEqual(readJson(Buffer.from('[1]')), [1])
  assert.equal(readJson(Buffer.from('{"a":1,"a":2}')), undefined)
  assert.deepEqual([readUtf8(Buffer.from('ü')), readUtf8(Buffer.from([0xc3]))], ['ü', null])
})

test('a body is read up to its limit, and no further', async () => {
  let sent = 0
  async function* body(parts: number) {
    for (let at = 0; at < parts; at++) {
      sent++
      yield Buffer.alloc(10)
    }
  }
  assert.equal((await readBody(body(3), 30))?.length, 30)
  assert.equal((await readBody(null, 30))?.length, 0)
  sent = 0
  assert.equal(await readBody(body(1000), 29), null)
  assert.equal(sent, 3)
  const response = new Response('x'.repeat(100))
  assert.equal(await readBody(response.clone().body, 10), null)
  assert.equal((await response.text()).length, 100)
})
