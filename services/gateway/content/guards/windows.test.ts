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
  // No letter stands twice, so that each part has one place.
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

test('what is no longer than an eighth of a window stands in one of them as a whole', () => {
  fc.assert(
    fc.property(fc.nat(4000), (at) => {
      const { parts } = windowsOf(`${'x'.repeat(at)}ATTACK!!${'x'.repeat(4000 - at)}`, 200)
      assert.ok(parts.some((part) => part.includes('ATTACK!!')))
    }),
  )
})
