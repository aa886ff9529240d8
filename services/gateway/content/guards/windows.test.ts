import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { WINDOWS_MAX, windowsOf } from './windows.ts'

test('a short text is one window, and a long one has as many as needed', () => {
  assert.deepEqual(windowsOf('', 8), { parts: [''], whole: true })
  assert.deepEqual(windowsOf('abcdefgh', 8), { parts: ['abcdefgh'], whole: true })
  assert.deepEqual(windowsOf('abcdefghi', 8), { parts: ['abcdefgh', 'hi'], whole: true })
  assert.deepEqual(windowsOf('ää', 3), { parts: ['ä', 'ä'], whole: true })
  assert.deepEqual(windowsOf('🙂🙂', 1), { parts: ['🙂', '🙂'], whole: true })
})

test('windows have the maximum length, split no code point, and leave no gaps', () => {
  // No letter occurs twice, so that each part has one position.
  const letter = fc.integer({ min: 0x20, max: 0x1ffff }).filter((code) => code < 0xd800 || code > 0xdfff)
  const text = fc.uniqueArray(letter, { maxLength: 300 }).map((codes) => String.fromCodePoint(...codes))
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 200 }), (source, maxBytes) => {
      const { parts, whole } = windowsOf(source, maxBytes)
      assert.ok(parts.length <= WINDOWS_MAX)
      let read = 0
      for (const part of parts) {
        assert.ok(Buffer.byteLength(part) <= Math.max(maxBytes, 4))
        const found = source.indexOf(part)
        assert.ok(found >= 0 && found <= read)
        read = found + part.length
      }
      assert.equal(read === source.length, whole)
    }),
    { numRuns: 500 },
  )
})

test('a text up to an eighth of a window is completely in one of them', () => {
  fc.assert(
    fc.property(fc.nat(4000), (at) => {
      const { parts } = windowsOf(`${'x'.repeat(at)}ATTACK!!${'x'.repeat(4000 - at)}`, 200)
      assert.ok(parts.some((part) => part.includes('ATTACK!!')))
    }),
  )
})
