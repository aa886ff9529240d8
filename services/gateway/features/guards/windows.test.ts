import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { WINDOWS_MAX, windowsOf } from './windows.ts'

test('a short text is one window, and a long one as many as it needs', () => {
  assert.deepEqual(windowsOf('', 8), { parts: [''], whole: true })
  assert.deepEqual(windowsOf('abcdefgh', 8), { parts: ['abcdefgh'], whole: true })
  assert.deepEqual(windowsOf('abcdefghi', 8), { parts: ['abcdefgh', 'hi'], whole: true })
  assert.deepEqual(windowsOf('ää', 3), { parts: ['ä', 'ä'], whole: true })
  assert.deepEqual(windowsOf('🙂🙂', 1), { parts: ['🙂', '🙂'], whole: true })
})

test('windows are as long as allowed, cut no code point, and leave nothing between them', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 300 })
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 200 }), (source, maxBytes) => {
      const wellFormed = source.toWellFormed()
      const { parts, whole } = windowsOf(wellFormed, maxBytes)
      assert.ok(parts.length <= WINDOWS_MAX)
      let read = 0
      for (const part of parts) {
        assert.ok(Buffer.byteLength(part) <= Math.max(maxBytes, 4))
        const found = wellFormed.indexOf(part, Math.max(0, read - maxBytes))
        assert.ok(found >= 0 && found <= read)
        read = Math.max(read, found + part.length)
      }
      assert.equal(read >= wellFormed.length, whole)
    }),
    { numRuns: 500 },
  )
})

test('what is no longer than an eighth of a window stands in one of them as a whole', () => {
  fc.assert(
    fc.property(fc.nat(4000), (at) => {
      const { parts } = windowsOf(`${'x'.repeat(at)}ATTACK!!${'x'.repeat(4000 - at)}`, 200)
      assert.ok(parts.some((part) => part.includes('ATTACK!!')))
    }),
  )
})
