import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ByteBuffer } from './byte-buffer.ts'

test('any chunking gives the same bytes, and a buffer is reusable after take', () => {
  const buffer = new ByteBuffer()
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 20 }), (chunks) => {
      for (const chunk of chunks) buffer.append(chunk)
      assert.equal(buffer.size, Buffer.concat(chunks).length)
      assert.ok(Buffer.concat(chunks).equals(buffer.take()))
      assert.equal(buffer.size, 0)
    }),
  )
})

test('a single chunk is returned without a copy, and no chunk is modified', () => {
  const buffer = new ByteBuffer()
  const only = Buffer.from('only')
  buffer.append(only)
  assert.equal(buffer.take(), only)
  buffer.append(only)
  buffer.append(Buffer.from('!'))
  assert.equal(Buffer.from(buffer.take()).toString(), 'only!')
  assert.equal(only.toString(), 'only')
})

test('one-byte chunks cost at most twice their bytes', () => {
  const buffer = new ByteBuffer()
  const one = Buffer.from('x')
  for (let count = 0; count < 5000; count++) buffer.append(one)
  const bytes = buffer.take()
  assert.equal(bytes.length, 5000)
  assert.ok(bytes.buffer.byteLength <= 2 * bytes.length)
})
