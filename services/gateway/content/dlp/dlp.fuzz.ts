import assert from 'node:assert/strict'
import { checkJson, runAtOnce } from '@plat/core'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { isDenial } from '../../call/index.ts'
import type { Detector } from './detectors/detector.ts'
import { detectorRows } from './detectors/table.ts'
import { findInJson, redacted, redactedJson } from './json/strings.ts'
import { compileProfile } from './profile.ts'
import { Redaction } from './redaction.ts'
import { Scanner } from './scan/scanner.ts'
import { TextStream } from './stream.ts'
import { DEFAULTS } from './testing/profiles.ts'
import { samples } from './testing/samples.ts'

const rows = detectorRows().map((row, place): Detector => ({ ...row, place }))
const scanner = new Scanner(rows)
/** Detectors that need no context words, which can get nearer when text between is replaced. */
const NEEDS_WORDS = new Set(samples.flatMap(({ id, near: words }) => (words === undefined ? [] : [id])))
const wordless = new Scanner(
  rows.filter(({ id }) => !NEEDS_WORDS.has(id) && id !== 'high_entropy_secret' && id !== 'email'),
)

const text = near(
  samples.flatMap(({ near: words = '', after = '', finds, misses }) => [`${words}${finds}${after}`, misses]),
)
const json = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc
    .array(fc.oneof(text, fc.constantFrom('"', '\\', '\\"', ':', '{', '}', ',', ' ')), { maxLength: 9 })
    .map((all) => all.join('')),
  fc
    .dictionary(text, fc.oneof(text, fc.integer(), fc.constant(4111111111111111)), { maxKeys: 4 })
    .map((value) => JSON.stringify(value)),
)

export const target = fuzzTarget('dlp', {
  'a redacted text has no hits, and one without hits is unchanged': fc.property(text, (given) => {
    const output = redacted(given, wordless.scan(given))
    assert.deepEqual(wordless.scan(output), [])
    if (wordless.scan(given).length === 0) assert.equal(output, given)
  }),
  'hits are in order, within the text, and do not overlap': fc.property(text, (given) => {
    let at = 0
    for (const { start, end } of scanner.scan(given)) {
      assert.ok(start >= at && end > start && end <= given.length)
      at = end
    }
  }),
  'a text in pieces yields the same as the whole': fc.property(
    text,
    fc.array(fc.nat(200), { maxLength: 8 }),
    (given, places) => {
      const stream = new TextStream({ scanner, carry: 512, isRedacted: () => true, isJson: false })
      let output = ''
      let at = 0
      for (const place of places) {
        output += runAtOnce(stream.push(given.slice(at, at + place))).text
        at += place
      }
      output += runAtOnce(stream.push(given.slice(at))).text + stream.end().text
      assert.equal(output, redacted(given, scanner.scan(given)))
    },
  ),
  'any bytes can be scanned, and JSON stays JSON': fc.property(json, (given) => {
    const bytes = Buffer.from(given)
    const { found } = runAtOnce(findInJson(bytes, scanner, 1_000_000))
    const output = runAtOnce(redactedJson(bytes, found))
    if (found.length === 0) assert.deepEqual(output, bytes)
    if (isJson(bytes)) JSON.parse(output.toString())
  }),
  'a message is forwarded as strict JSON or refused': fc.property(json, (given) => {
    const bytes = Buffer.from(given)
    if (!isJson(bytes)) return
    const profile = compileProfile('p', DEFAULTS)
    assert.ok(profile.arguments !== null)
    const judged = new Redaction(profile, profile.arguments, 'arguments', () => {}).judge(bytes, {})
    if (!isDenial(judged)) checkJson(judged.bytes)
  }),
})

function isJson(bytes: Uint8Array): boolean {
  try {
    checkJson(bytes)
    return true
  } catch {
    return false
  }
}
