import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextMark } from './marks.ts'

test('every mark is found at every position, and nothing else', () => {
  const parts = [
    '"kind":"checkpoint"',
    '"kind":"anchor"',
    '"kind":"segment"',
    '"kind":"intent"',
    '"kind":"segmen"',
    't"t"',
    'x',
    '"kind":"',
  ]
  const mark = /"kind":"(?:checkpoint|anchor|segment)"/g
  let seed = 7
  for (let round = 0; round < 2000; round++) {
    let text = ''
    for (let part = 0; part < 6; part++) {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      text += parts[(seed >> 8) % parts.length]
    }
    const found: number[] = []
    const buffer = Buffer.from(text)
    for (let at = nextMark(buffer, 0); at < buffer.length; at = nextMark(buffer, at + 1)) found.push(at)
    assert.deepEqual(
      found,
      Array.from(text.matchAll(mark), ({ index }) => index),
      text,
    )
  }
})
