import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAtOnce } from '@plat/core'
import fc from 'fast-check'
import { RE2JS } from 're2js'
import type { Detector } from '../detectors/detector.ts'
import { detectorRows } from '../detectors/table.ts'
import { random, samples } from '../testing/samples.ts'
import { createCustom, expressionFault } from './custom.ts'
import type { Hit } from './scan-state.ts'
import { Scanner } from './scanner.ts'

const rows = detectorRows().map((row, place): Detector => ({ ...row, place }))
const validated = new Scanner(rows.filter(({ byDefault }) => byDefault))
const everything = new Scanner(rows)

const found = (scanner: Scanner, text: string) =>
  scanner.scan(text).map(({ detector, start, end }) => `${detector.id}: ${text.slice(start, end)}`)

test('every anchor is found at every position, also where one begins another', () => {
  const words = ['he', 'she', 'his', 'hers', 'ushers', 'sk-', 'sk-ant-', '://', 'aab', 'ab']
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...words, 'h', 's', 'u', 'a', 'é', ' '), { maxLength: 12 }), (parts) => {
      const text = parts.join('')
      const seen: string[] = []
      const detectors = words.map((word, place): Detector => {
        const find = (_: unknown, __: unknown, at: number, length: number) => void seen.push(`${at}+${length}`)
        return { ...NAMELESS, id: word, place, finder: { anchors: [word], find } }
      })
      new Scanner(detectors).scan(text)
      const expected = words.flatMap((word) => placesOf(text, word).map((at) => `${at}+${word.length}`))
      assert.deepEqual(seen.sort(), expected.sort())
    }),
  )
})

const NAMELESS = { secret: false, byDefault: true, finds: '', validated: '' }

function placesOf(text: string, word: string): number[] {
  const places: number[] = []
  for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + 1)) places.push(at)
  return places
}

test('all samples are found in one text, each by its own detector, and nothing else is', () => {
  const parts = samples.filter(({ id }) => rows.find((row) => row.id === id)?.byDefault)
  const text = parts.map(({ near = '', after = '', finds }) => `${near}${finds}${after}`).join(' \n ; ')
  // One stands for two: a token behind its scheme, a key that is a member.
  const expected = parts.map(({ id }) => id)
  assert.deepEqual(new Set(validated.scan(text).map(({ detector }) => detector.id)), new Set(expected))
})

test('fractions, parts of identifiers and longer numbers are not taken for numbers', () => {
  for (const text of [
    '0.4111111111111111',
    'a4111111111111111',
    '4111111111111111b',
    '14111111111111111',
    '4111111111111111.5',
    '1-4111-1111-1111-1111',
    '4111-1111-1111-1111-1',
    '8f14e45f-4111-4111-9111-111111111111',
    '1763763000000',
    '2026-11-21T22:15:30.123456789Z',
    '2026-11-2215',
    '20261121T101500',
    '123-45-6789',
    'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'sha512-/P6FNnLbHjXJMRF1dPoZoVTyHvFcuVhbDpzml9DPMlbeErYlZ18GueAaG9GhYhAm/9AN7i7Y6crmDrLX0DeJ4Q==',
    'http://localhost:8080/path:with@sign',
    'sk-learn scikit-learn ask-me-anything-you-like-to-know',
    'eyJ hello eyJhbGciOiJ.x.y',
    'Basic usage: Bearer of good news',
    'ISBN 978-3-16-148410-0, tel. 030 123456, order 4000000000',
  ]) {
    assert.deepEqual(found(validated, text), [], text)
  }
})

test('numbers near words are found only there, as is a value whose member says what it is', () => {
  assert.deepEqual(found(validated, 'count 86095742719'), [])
  assert.deepEqual(found(validated, 'Steuer-ID: 86095742719'), ['de_tax_id: 86095742719'])
  const json = '{"steuerId":"86095742719"}'
  const start = json.indexOf('8')
  const context = { text: json, end: start - 1 }
  assert.equal(validated.scan(json, start, json.length - 2, { context }).length, 1)
  assert.equal(validated.scan(json, start, json.length - 2).length, 0)
})

test('of hits that overlap one counts, and a secret before personal data', () => {
  const text = 'postgres://alice.b:s3cret@mail.example.com/db'
  const both = everything.scan(text)
  assert.equal(both.length, 1)
  assert.equal(both[0]?.detector.id, 'url_credentials')
  const within = `x+ghp_${random(36)}@example.com`
  const two = new Scanner(rows.filter(({ id }) => id === 'email' || id === 'github_token'))
  assert.deepEqual(found(two, within), [`github_token: ${within}`])
})

test('the work grows with the text and not with its square, whatever the text is', () => {
  const pieces = samples.flatMap(({ near = '', finds, misses }) => [
    finds,
    misses,
    near + finds.slice(0, 9),
    finds.slice(0, 7),
  ])
  const odd = [
    'sk-',
    'eyJ',
    'eyJ-',
    'eyJhbGciOiJub25lIn0.',
    '-----BEGIN ',
    '-----BEGIN PRIVATE KEY-----',
    '://',
    'ya29.',
    '@',
    'a@',
    '+1',
    '1 ',
    '12345678901 ',
    'AAAAAA1',
    '.',
    '-',
    'A',
    '1',
    'DE89 ',
    'Q~',
    'a1Q~',
    'pypi-AgEI',
    'Bearer ',
    'sig=',
  ]
  for (const piece of [...new Set([...pieces, ...odd])]) {
    const short = work(piece, 4_000)
    const long = work(piece, 32_000)
    assert.ok(long <= 12 * short + 20_000, `${JSON.stringify(piece)}: ${short} steps, then ${long}`)
  }
})

/** Characters that were looked at beyond the one pass. */
function work(piece: string, length: number): number {
  const scanner = new Scanner(rows)
  scanner.scan(piece.repeat(Math.ceil(length / piece.length)).slice(0, length))
  return scanner.looked
}

test('an expression finds in any part of a text what the library finds, however short', () => {
  const regexes = [
    'a',
    'a.b',
    '(?:[a-z0-9]+[.@-])+[a-z]{2,8}x',
    '\\bab?',
    '^a|b$',
    '\\Ba',
    '(?i)éa{2,3}',
    '(?s)..😀',
    'x*',
    'a|(bx|1)+x',
    'a[^b]*b|a',
    '(?:a|ab)(?:x|bx1)|b{2,}?',
    '(?m)^a|1$',
    '\\b',
    '(?i)AAB|é',
  ]
  const own = regexes.map((regex) => ({
    regex,
    custom: createCustom({ ...NAMELESS, id: 'own', place: 0, finder: {} }, regex),
  }))
  const parts = fc.constantFrom(...'abx1.@- \n', 'É', '😀', '\ud83d', 'ab.cdx', 'aab')
  const texts = fc.array(parts, { maxLength: 24 }).map((all) => all.join(''))
  fc.assert(
    fc.property(fc.constantFrom(...own), texts, fc.nat(30), fc.nat(30), ({ regex, custom }, text, one, other) => {
      const [start, end] = [Math.min(one, other, text.length), Math.min(Math.max(one, other), text.length)]
      const hits: Hit[] = []
      runAtOnce(custom.find(text, start, end, hits))
      const matcher = RE2JS.compile(regex).matcher(text.slice(0, end))
      const expected: [number, number][] = []
      for (let found = matcher.find(start); found; found = matcher.find())
        if (matcher.end() > matcher.start()) expected.push([matcher.start(), matcher.end()])
      assert.deepEqual(
        hits.map((hit) => [hit.start, hit.end]),
        expected,
      )
      assert.ok(hits.every((hit) => hit.end - hit.start >= custom.shortest))
      if (runAtOnce(custom.absentFrom(text))) assert.deepEqual(expected, [])
    }),
    { numRuns: 5000 },
  )
})

test('a long text has the same hits in steps, between which others are scanned, as at once', () => {
  const long = samples.map(({ near = '', after = '', finds }) => `${near}${finds}${after} ; `).join('')
  const text = long.repeat(Math.ceil(200_000 / long.length))
  const steps = everything.scanning(text, 0, text.length, {})
  let step = steps.next()
  let count = 0
  for (; step.done !== true; step = steps.next(), count++) everything.scan('card 4111 1111 1111 1111')
  assert.ok(count > 5, `${count} steps`)
  assert.deepEqual(step.value, everything.scan(text))
})

test('an expression that would read the rest of a text for each match finds the rest as one hit', () => {
  const custom = createCustom({ ...NAMELESS, id: 'own', place: 0, finder: {} }, 'a[^b]*b|a')
  const hits: Hit[] = []
  runAtOnce(custom.find('a'.repeat(100_000), 0, 100_000, hits))
  assert.ok(hits.length < 1000, `${hits.length} hits`)
  assert.equal(hits.at(-1)?.end, 100_000)
  for (const [at, { start }] of hits.entries()) assert.equal(start, hits[at - 1]?.end ?? 0)
})

test('an expression that is not linear is refused with the reason', () => {
  assert.equal(expressionFault('acct-[0-9]{6}'), null)
  for (const regex of ['(?=a)', '(a)\\1', '(?<!b)c', '[', 'a*', ''])
    assert.notEqual(expressionFault(regex), null, regex)
})
