import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget } from '../../../test/fuzz/target.ts'
import { followSegment, readSegment } from './segment.ts'

const seal = Buffer.from(
  JSON.stringify({
    edge: 'e',
    ledgerId: 'example',
    from: 0,
    to: 0,
    prev: '0'.repeat(64),
    head: '7c8281d1e195b13d6dd5835cffc6360d2a8add601bc6f12550b7957039a26955',
    bytes: 282,
    since: '2026-01-01T00:00:00.000000Z',
    at: '2026-01-01T00:00:00.000000Z',
  }),
).toString('base64url')
const header = Buffer.from('{"alg":"EdDSA","kid":"k","typ":"plat-segment+jws"}').toString('base64url')
const line =
  '{"hash":"7c8281d1e195b13d6dd5835cffc6360d2a8add601bc6f12550b7957039a26955","prev":"0000000000000000000000000000000000000000000000000000000000000000","rec":{"at":"2026-01-01T00:00:00.000000Z","format":1,"kind":"config","ledgerId":"example","replica":"r1","tenant":""},"seq":0,"v":1}'

const samples = [`${header}.${seal}.AAAA\n${line}\n`, `${header}.${seal}.AAAA\n`]

/** One change of a segment's text: a piece is replaced by any text. */
const change = fc.record({ at: fc.nat(900), cut: fc.nat(4), bytes: fc.string({ maxLength: 4, unit: 'binary-ascii' }) })

export const target = fuzzTarget('ledger-segment', {
  'any bytes are a segment or none, and its chain is the one that its seal names or is refused': fc.property(
    fc.constantFrom(...samples),
    fc.array(change, { maxLength: 3 }),
    (sample, changes) => {
      let text = sample
      for (const { at, cut, bytes } of changes) text = text.slice(0, at) + bytes + text.slice(at + cut)
      const segment = readSegment(Buffer.from(text, 'latin1'))
      if (typeof segment === 'string') return
      const before = Buffer.from(segment.lines)
      const followed = followSegment(segment, segment.seal.from - 1)
      assert.ok(segment.lines.equals(before), 'the bytes stay as they were')
      if (typeof followed !== 'string') assert.equal(followed.after.toString(), `${line}\n`)
    },
  ),
})
