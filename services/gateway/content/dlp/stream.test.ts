import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAtOnce } from '@plat/core'
import fc from 'fast-check'
import { detectorRows } from './detectors/table.ts'
import { redacted } from './json/strings.ts'
import { createCustom } from './scan/custom.ts'
import { Scanner } from './scan/scanner.ts'
import { TextStream } from './stream.ts'
import { PEM, random, samples } from './testing/samples.ts'

const rows = detectorRows().map((row, place) => ({ ...row, place }))
const validated = new Scanner(rows.filter(({ byDefault }) => byDefault))
const everything = new Scanner(rows)
const always = () => true

function streamed(scanner: Scanner, pieces: readonly string[], carry = 256) {
  const stream = new TextStream({ scanner, carry, isRedacted: always, isJson: false })
  let text = ''
  const ids: string[] = []
  for (const released of [...pieces.map((piece) => () => runAtOnce(stream.push(piece))), () => stream.end()]) {
    const { text: piece, hits } = released()
    text += piece
    ids.push(...hits.map(({ detector }) => detector.id))
  }
  return { text, ids }
}

const whole = (scanner: Scanner, text: string) => {
  const hits = scanner.scan(text)
  return { text: redacted(text, hits), ids: hits.map(({ detector }) => detector.id) }
}

const cutAt = (text: string, places: readonly number[]) => {
  const cuts = [0, ...places.toSorted((one, other) => one - other), text.length]
  return cuts.slice(1).map((end, at) => text.slice(cuts[at], end))
}

for (const { id, near = '', after = '', finds } of samples) {
  test(`${id} is found for every split into two pieces, and in single characters`, () => {
    // Shows D3.dlp.profile.streamCarryBytes.
    const scanner = rows.find((row) => row.id === id)?.byDefault === true ? validated : everything
    const text = `It says: ${near}${finds}${after} and goes on.`
    const expected = whole(scanner, text)
    assert.ok(expected.ids.length > 0)
    assert.ok(!expected.text.includes(finds))
    for (let at = 1; at < text.length; at++)
      assert.deepEqual(streamed(scanner, cutAt(text, [at])), expected, `cut at ${at}`)
    assert.deepEqual(streamed(scanner, [...text]), expected)
  })
}

/** Texts with many near misses. */
const part = fc.oneof(
  fc.constantFrom(
    ...samples.flatMap(({ near = '', after = '', finds, misses }) => [`${near}${finds}${after}`, misses]),
  ),
  fc.constantFrom(
    ' ',
    '\n',
    '\\n',
    '.',
    '-',
    ',',
    '_',
    'a',
    'Z',
    '7',
    '"',
    '4111',
    '+',
    '@',
    'sk-',
    'eyJ',
    '-----',
    '://',
    'ä',
    '\ud83d\ude00',
  ),
)
const text = fc.array(part, { maxLength: 10 }).map((parts) => parts.join(''))

test('any split into pieces yields the result of the whole text', () => {
  fc.assert(
    fc.property(text, fc.array(fc.nat(3000), { maxLength: 12 }), fc.boolean(), (given, places, all) => {
      const scanner = all ? everything : validated
      const pieces = cutAt(
        given,
        places.map((place) => place % (given.length + 1)),
      )
      assert.deepEqual(streamed(scanner, pieces, 512), whole(scanner, given))
    }),
    { numRuns: 2000 },
  )
})

test('text that cannot become a hit is not held back', () => {
  const stream = new TextStream({ scanner: validated, carry: 256, isRedacted: always, isJson: false })
  const released = ['The', ' quick', ' brown fox', ' jumps over', ' 13 lazy dogs', '.', ' It is a test of'].map(
    (piece) => runAtOnce(stream.push(piece)).text,
  )
  assert.deepEqual(released, ['The', ' quick', ' brown fox', ' jumps over', ' 13 lazy dogs', '.', ' It is a test of'])
})

test('a key of any length is held in little memory, and no part of it passes', () => {
  const lines = `${'q7Zp2mXw9KcR4tYb'.repeat(4)}\n`.repeat(2000)
  const text = `here: ${PEM.replace(/\n[^-]+\n/, `\n${lines}`)} end`
  const stream = new TextStream({ scanner: validated, carry: 256, isRedacted: always, isJson: false })
  let released = ''
  for (let at = 0; at < text.length; at += 997) released += runAtOnce(stream.push(text.slice(at, at + 997))).text
  released += stream.end().text
  assert.equal(released, 'here: [REDACTED:private_key] end')
  assert.ok(validated.looked < 40 * text.length, String(validated.looked))
})

test('a long key does not look like a shorter one because its middle is dropped', () => {
  const given = `ops_eyJ${random(600)}_`
  assert.deepEqual(streamed(everything, cutAt(given, [513]), 512), whole(everything, given))
  // A hit can begin within another one that is held.
  const both = `01019040035 ops_eyJ${random(600)}+sk_live_${random(24)} end`
  assert.deepEqual(streamed(validated, cutAt(both, [630]), 256), whole(validated, both))
})

test('a number after a random run has the same result in pieces and in one text', () => {
  const given = 'ABSKQmVkcm9ja0FQSUtleSq7Zp2mXw9KcR4tYb6NvL8sHd3JfG5k912-70-1234.131052-308T'
  assert.deepEqual(streamed(everything, [given]), whole(everything, given))
})

test('the rest of a key does not pass after undecided text', () => {
  // `eyJ-` may begin a token until more than `carry` characters stand behind it.
  const given = `eyJ-ops_eyJ${random(600)}`
  for (const cut of [513, 540, 600])
    assert.deepEqual(streamed(everything, cutAt(given, [cut]), 512), whole(everything, given))
})

test('audited hits of any length pass unchanged, and are counted', () => {
  const lines = `${'q7Zp2mXw9KcR4tYb'.repeat(4)}\n`.repeat(100)
  const text = `here: ${PEM.replace(/\n[^-]+\n/, `\n${lines}`)} and 4111 1111 1111 1111 end`
  for (const size of [1, 50, 977]) {
    const stream = new TextStream({
      scanner: validated,
      carry: 256,
      isRedacted: ({ detector }) => !detector.secret,
      isJson: false,
    })
    let sent = ''
    const ids = new Set<string>()
    for (let at = 0; at <= text.length; at += size) {
      const released = at < text.length ? runAtOnce(stream.push(text.slice(at, at + size))) : stream.end()
      sent += released.text
      for (const { detector } of released.hits) ids.add(detector.id)
    }
    sent += stream.end().text
    assert.equal(sent, text.replace('4111 1111 1111 1111', '[REDACTED:credit_card]'))
    assert.deepEqual([...ids], ['private_key', 'credit_card'])
  }
})

test('without carry each piece is scanned alone; a small carry limits the held text', () => {
  const token = `ghp_${'q7Zp2mXw9KcR4tYb6NvL8sHd3JfG5kQa1ThW'}`
  assert.deepEqual(streamed(validated, [`a ${token} b`], -1), {
    text: 'a [REDACTED:github_token] b',
    ids: ['github_token'],
  })
  assert.equal(streamed(validated, [token.slice(0, 10), token.slice(10)], -1).text, token)
  const stream = new TextStream({ scanner: validated, carry: 16, isRedacted: always, isJson: false })
  assert.equal(runAtOnce(stream.push(token.slice(0, 30))).text.length, 14)
  assert.equal(streamed(validated, [`a ${token} b`], 16).text, 'a [REDACTED:github_token] b')
})

test('a custom expression matches across pieces within the carry', () => {
  const detector = {
    id: 'case_number',
    secret: false,
    byDefault: false,
    finds: '',
    validated: '',
    finder: {},
    place: 0,
  }
  const scanner = new Scanner([], [createCustom(detector, '(?i)case [0-9]{4}-\\p{Lu}{2,8}')])
  const given = 'Ä😀 see Case 1234-ÄÖÜ, and case 99-X.'
  const expected = { text: 'Ä😀 see [REDACTED:case_number], and case 99-X.', ids: ['case_number'] }
  assert.deepEqual(whole(scanner, given), expected)
  for (let at = 1; at < given.length; at++) assert.deepEqual(streamed(scanner, cutAt(given, [at]), 32), expected)
  assert.deepEqual(streamed(scanner, [...given], 32), expected)
})

test('a long piece of escapes is decoded in many steps, with the text that it denotes', () => {
  const stream = new TextStream({ scanner: validated, carry: 256, isRedacted: always, isJson: true })
  const steps = stream.push(`"${'\\u0061'.repeat(100_000)}`)
  let count = 1
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) count++
  assert.ok(count > 20, `${count} steps`)
  assert.equal(step.value.text + stream.end().text, `"${'a'.repeat(100_000)}`)
})

test('pieces of JSON stay JSON: outside of strings a replacement is quoted', () => {
  const given = '{"a":4111111111111111,"b":"x\\"4111 1111 1111 1111","c":[4111111111111111]}'
  for (let at = 1; at < given.length; at++) {
    const stream = new TextStream({ scanner: validated, carry: 256, isRedacted: always, isJson: true })
    const released =
      cutAt(given, [at])
        .map((piece) => runAtOnce(stream.push(piece)).text)
        .join('') + stream.end().text
    const mark = '[REDACTED:credit_card]'
    assert.deepEqual(JSON.parse(released), { a: mark, b: `x"${mark}`, c: [mark] })
  }
})
