import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { lineRoom, readRawLine, sealLine, ZERO_HASH } from './format.ts'

test('a sealed line is its frame around the record, at any offset, and no adjacent byte changes', () => {
  const prevs = [ZERO_HASH, hash('sha256', 'before', 'hex')]
  const records = ['{}', '{"tool":"наша €😀"}', `{"reason":"${'x'.repeat(5000)}"}`]
  for (const prev of prevs)
    for (const rec of records)
      for (const seq of [0, 9, 10, 1_234_567, Number.MAX_SAFE_INTEGER]) {
        const body = `"prev":"${prev}","rec":${rec},"seq":${seq},"v":1}`
        const digest = hash('sha256', `plat-ledger-v1\n${body}`, 'hex')
        const text = `{"hash":"${digest}",${body}\n`
        const at = 7
        const buffer = Buffer.alloc(at + lineRoom(rec) + 1, 0xff)
        const sealed = sealLine({ buffer, at, prev }, rec, seq)
        assert.deepEqual(sealed, { hash: digest, end: at + Buffer.byteLength(text) })
        assert.equal(buffer.toString('utf8', at, sealed.end), text)
        assert.ok(buffer.subarray(0, at).every((byte) => byte === 0xff))
        assert.ok(buffer.subarray(sealed.end).every((byte) => byte === 0xff))
        const read = readRawLine(buffer, at, sealed.end - 1)
        assert.ok(
          typeof read !== 'string' && read.hash === digest && read.prev === prev && read.seq === seq,
          String(read),
        )
      }
})
