import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkJson, JsonError, MAX_JSON_DEPTH, MAX_NUMBER_BYTES, parseStrict } from '../index.ts'

const bytes = (text: string) => Buffer.from(text)

function accepts(text: string): boolean {
  try {
    checkJson(bytes(text))
    return true
  } catch (error) {
    assert.ok(error instanceof JsonError, String(error))
    return false
  }
}

const ACCEPTED = [
  ...['0', '-0', '12', '-1.5', '1e3', '1E+3', '1.0e-9', '1e400', '""', '"a"', 'true', 'false', 'null', '[]', '{}'],
  ...[' \t\r\n1 \n', '[1,2]', '[ 1 , 2 ]', '[[],{}]', '{"a":1}', '{ "a" : { "a" : [ { "a" : 1 } ] } }', '{"":0}'],
  ...[String.raw`"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00"`, '"é😀\u007f"', String.raw`"\ud800"`, '{"a":1,"A":2}'],
  ...['{"a":{"b":1},"b":{"a":1}}', '[{"a":1},{"a":1}]', '{"__proto__":1,"constructor":2}'],
]

const REFUSED = [
  ...['', ' ', '01', '-', '+1', '1.', '.5', '1e', '1e+', '0x1', 'NaN', 'Infinity', '-Infinity', 'tru', 'True', 'nulL'],
  ...['nulll', 'undefined', "'a'", '"', '"a', String.raw`"\x41"`, String.raw`"\u12g4"`, String.raw`"\u12"`, '"\\'],
  ...['"\n"', '"\u0000"', '[', ']', '[1', '[1,', '[1,]', '[,1]', '[1 2]', '[1}', '{', '}', '{]', '{"a"}', '{"a":}'],
  ...['{"a":1,}', '{,"a":1}', '{a:1}', '{1:1}', '{"a" 1}', '{"a":1 "b":2}', '{"a"::1}', '1 2', '{} {}', '[]]', '/**/1'],
  ...['\uFEFF1', '\u00a01', '1\u0000', '{"a":1,"a":1}', '{"a":1,"b":2,"a":3}', '[{"a":{"b":1,"b":2}}]'],
  ...[String.raw`{"a":1,"\u0061":2}`, String.raw`{"\u0061":1,"a":2}`, String.raw`{"\/":1,"/":2}`, '{"é":1,"é":2}'],
]

test('every form of the grammar is accepted', () => {
  for (const text of ACCEPTED) assert.ok(accepts(text), text)
})

test('everything beyond the grammar, and duplicate members, are refused', () => {
  for (const text of REFUSED) assert.ok(!accepts(text), JSON.stringify(text))
})

test('a duplicate is found among many members, at any position and in any spelling', () => {
  const members = (last: string) => `{${Array.from({ length: 40 }, (_, n) => `"m${n}":${n}`).join(',')},${last}}`
  assert.ok(accepts(members('"m40":0')))
  for (const last of ['"m0":0', '"m15":0', '"m16":0', '"m39":0', String.raw`"\u006d7":0`])
    assert.ok(!accepts(members(last)))
})

test('a duplicate is found across an object between the two', () => {
  const members = Array.from({ length: 20 }, (_, n) => `"m${n}":${n}`).join(',')
  for (const name of ['m0', 'm17']) assert.ok(!accepts(`{${members},"o":{"x":1,"y":2},"${name}":0}`))
  assert.ok(accepts(`{${members},"o":{"m17":1},"x":0}`))
})

test('names that escapes hide are compared with those before and after them', () => {
  assert.ok(!accepts(String.raw`{"x":1,"\u0079":1,"x":2}`))
  assert.ok(!accepts(String.raw`{"\u0079":1,"z":1,"z":2}`))
  assert.ok(accepts(String.raw`{"\u0079":1,"z":{"y":1,"z":2}}`))
})

test('members are counted over all objects, and one more than allowed is refused by checking and by reading', () => {
  const members = (count: number) => Array.from({ length: count }, (_, n) => `"m${n}":${n}`).join(',')
  const options = { maxMembers: 30 }
  for (const allowed of [
    `{${members(30)}}`,
    `[{${members(15)}},{${members(15)}}]`,
    `{"a":{${members(28)}},"b":"c:d"}`,
  ]) {
    checkJson(Buffer.from(allowed), options)
    assert.deepEqual(parseStrict(allowed, options), JSON.parse(allowed))
  }
  for (const refused of [
    `{${members(31)}}`,
    `[{${members(15)}},{${members(16)}}]`,
    `{"a":{${members(28)}},"b":0,"c":1}`,
  ]) {
    assert.throws(() => checkJson(Buffer.from(refused), options), /^JsonError: too many members at byte \d+$/)
    assert.throws(() => parseStrict(refused, options), /^JsonError: too many members at byte \d+$/)
    assert.deepEqual(parseStrict(refused), JSON.parse(refused))
  }
})

test('invalid UTF-8 is refused, and the error says where it begins', () => {
  for (const before of ['', 'a', 'é', '\u{1f600}', '\ufffda\ufffd', '€'.repeat(7), 'ab€\u{1f600}é'.repeat(50)])
    for (const after of ['', 'a', '€'.repeat(9), 'a\u{1f600}'.repeat(60)])
      for (const bad of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0x80, 0x80, 0x80, 0x80, 0x80]]) {
        const text = Buffer.concat([bytes(`"${before}`), Buffer.from(bad), bytes(`${after}"`)])
        const offset = Buffer.byteLength(before) + 1
        assert.throws(() => checkJson(text), { message: `invalid UTF-8 at byte ${offset}`, offset })
      }
})

test('nesting is allowed to the limit and not beyond, and deep input costs no stack', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  assert.ok(accepts(nested(MAX_JSON_DEPTH)))
  assert.ok(!accepts(nested(MAX_JSON_DEPTH + 1)))
  checkJson(bytes(nested(200_000)), { maxDepth: 200_000 })
  checkJson(bytes('{"a":[1]}'), { maxDepth: 2 })
  assert.throws(() => checkJson(bytes('{"a":[[1]]}'), { maxDepth: 2 }), { name: 'JsonError', offset: 6 })
})

test('the error says where reading stopped and quotes nothing of the input', () => {
  assert.throws(
    () => checkJson(bytes('{"secret":1,"secret":2}')),
    (error) => {
      assert.ok(error instanceof JsonError)
      assert.equal(error.offset, 12)
      assert.equal(error.message, 'a duplicate member name at byte 12')
      return true
    },
  )
})

test('a view into a larger buffer is read at its own place', () => {
  const whole = bytes('xx{"a":1}yy')
  assert.deepEqual(parseStrict(whole.subarray(2, 9)), { a: 1 })
})

test('a refused input leaves nothing behind for the next', () => {
  assert.ok(!accepts('{"a":1,"b":{"c":1,"c":2'))
  assert.ok(accepts('{"a":1,"b":{"c":1}}'))
})

test('the output of JSON.stringify is accepted, with the value that JSON.parse returns', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), fc.constantFrom(0, 2), (text, indent) => {
      const spaced = JSON.stringify(JSON.parse(text), null, indent)
      assert.deepEqual(parseStrict(spaced), JSON.parse(spaced))
    }),
  )
})

test('text that JSON.parse refuses is refused, and what is refused beyond that are duplicates', () => {
  const alphabet = [...'{}[]:,"\\u0019ae.-+ tfn', 'true', '"a":', '\\u0061']
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...alphabet), { maxLength: 12 }), (parts) => {
      const text = parts.join('')
      const accepted = accepts(text)
      if (accepted) JSON.parse(text)
      else if (parses(text)) assert.match(refusal(text), /duplicate/)
    }),
    { numRuns: 2000 },
  )
})

test('reading a value refuses what checking it refuses, in the same words', () => {
  const long = 'x'.repeat(47)
  const alphabet = [
    ...'{}[]:,"\\1 ',
    '{"a":',
    '"b":',
    '"\\u0061":',
    `"${long}"`,
    `"${long}\\`,
    `${long}"`,
    '\\\\',
    '\n',
    'é',
  ]
  const input = fc.oneof(
    fc.constantFrom(...ACCEPTED, ...REFUSED),
    fc.array(fc.constantFrom(...alphabet), { maxLength: 14 }).map((parts) => parts.join('')),
  )
  fc.assert(
    fc.property(input, fc.constantFrom(1, 2, MAX_JSON_DEPTH), (text, maxDepth) => {
      const refused = problem(() => checkJson(bytes(text), { maxDepth }))
      assert.equal(
        problem(() => parseStrict(bytes(text), { maxDepth })),
        refused,
      )
      if (refused === null) assert.deepEqual(parseStrict(bytes(text)), JSON.parse(text))
    }),
    { numRuns: 3000 },
  )
})

test('a long string is read to its own end, whatever escapes stand before a quote', () => {
  for (let length = 44; length < 56; length++) {
    for (const end of ['\\"', '\\\\', '\\\\\\"', '\\\\\\\\']) {
      const text = `{"s":"${'x'.repeat(length)}${end}","t":{"s":1,"u":2}}`
      assert.deepEqual(parseStrict(text), JSON.parse(text))
      assert.throws(() => parseStrict(text.replace('"u"', '"s"')), { message: /duplicate/ })
    }
  }
})

/** Returns the error and its offset; null without one. */
function problem(read: () => unknown): string | null {
  try {
    read()
    return null
  } catch (error) {
    assert.ok(error instanceof JsonError, String(error))
    return `${error.offset} ${error.message}`
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function refusal(text: string): string {
  try {
    checkJson(bytes(text))
    return ''
  } catch (error) {
    return String(error)
  }
}

test('a number literal may have 4,096 characters and no more, and a string of digits as many as it wants', () => {
  const long = '1'.repeat(MAX_NUMBER_BYTES)
  for (const text of [long, `[${long},-1]`, `"${long}${long}"`, `{"a":${long}}`, `[[{"a":${long} } ] , [${long}\t]]`]) {
    assert.ok(accepts(text))
    parseStrict(text)
  }
  for (const text of [`[{"a":${long}1} , 1]`, `${long}1`, `[1,-${long}]`, `{"a":1.${long}}`, `[1e${long}]`]) {
    assert.ok(!accepts(text))
    assert.throws(() => parseStrict(text), /a number longer than 4096 characters at byte/)
  }
})

test('among many names, those are equal whose characters are, whether they are escaped or beyond ASCII', () => {
  const many = Array.from({ length: 20 }, (_, at) => `"m${at}":1`).join(',')
  const check = (...names: readonly string[]) =>
    checkJson(Buffer.from(`{${many},${names.map((name) => `"${name}":1`).join(',')}}`))
  for (const [one, other] of [
    ['é', '\\u00e9'],
    ['\\ud83d\\ude00', '😀'],
    ['\\ud800', '\\uD800'],
    ['é', 'é'],
    ['m\\u0031', 'm1'],
  ])
    assert.throws(() => check(one ?? '', other ?? ''), { name: 'JsonError', message: /duplicate/ }, `${one} ${other}`)
  // The bytes of one are the characters of the other.
  check('é', 'Ã©', '\\u00c3\\u00a9x', '\\ud800', '\\udfff', '\\ufffd', '😀')
})

test('duplicates among names that are only counted are those that checking finds', () => {
  const spellings = [
    'a',
    '\\u0061',
    '__proto__',
    '\\u005f_proto__',
    '1',
    '01',
    '-1',
    '4294967295',
    'é',
    '\\u00e9',
    '\ud800',
    '\ud801',
  ]
  const plain = fc.integer({ min: 0, max: 60 }).map((at) => `m${at}`)
  const name = fc.oneof({ weight: 8, arbitrary: plain }, fc.constantFrom(...spellings, '\\ud800', '\\ud801'))
  const { value } = fc.letrec<{ value: string; object: string }>((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, fc.constantFrom('1', '"m1"', '[]', '[1,{"a":1}]'), tie('object'), tie('object')),
    object: fc
      .array(fc.tuple(name, tie('value')), { maxLength: 24 })
      .map((members) => `{${members.map(([each, inner]) => `"${each}":${inner}`).join(',')}}`),
  }))
  fc.assert(
    fc.property(value, (text) => {
      const refused = problem(() => checkJson(bytes(text)))
      assert.equal(
        problem(() => parseStrict(bytes(text))),
        refused,
      )
      assert.equal(
        problem(() => parseStrict(text)),
        refused,
      )
    }),
    { numRuns: 3000 },
  )
})

test('a duplicate is found whatever the length of its name, in objects at any depth', () => {
  const depths = [1, 63, 64, 65, 100]
  for (let length = 0; length < 53; length++) {
    const name = 'x'.repeat(length)
    for (const depth of depths) {
      const within = (object: string) => '{"o":'.repeat(depth - 1) + object + '}'.repeat(depth - 1)
      const other = `${name.slice(1)}y`
      const plain = within(`{"${name}":1,"${other}":2}`)
      assert.deepEqual(parseStrict(plain, { maxDepth: 128 }), JSON.parse(plain))
      assert.throws(() => parseStrict(within(`{"${name}":1,"${other}":2,"${name}":3}`), { maxDepth: 128 }), /duplicate/)
    }
  }
})

test('names after an object with many, escaped or long names are compared as before it', () => {
  const many = Array.from({ length: 20 }, (_, at) => `"m${at}":1`).join(',')
  for (const inner of [`{${many}}`, String.raw`{"\u0061":1}`, `{"${'x'.repeat(60)}":1}`]) {
    assert.deepEqual(parseStrict(`{"a":${inner},"b":1}`), JSON.parse(`{"a":${inner},"b":1}`))
    assert.throws(() => parseStrict(`{"a":${inner},"b":1,"a":1}`), /duplicate/)
    assert.throws(() => parseStrict(`[${inner},{"b":1,"b":1}]`), /duplicate/)
  }
})

const SHORT: Readonly<Record<string, string>> = { '"': '"', '\\': '\\', '/': '/', '\n': 'n', '\t': 't', '\b': 'b' }

/** One of the spellings of a name in JSON; `choices` selects it, one number a UTF-16 unit. */
function spelled(name: string, choices: readonly number[]): string {
  let [text, unit] = ['', 0]
  for (const character of name) {
    const choice = (choices[unit % choices.length] ?? 0) % 4
    const short = SHORT[character]
    const needsEscape = character < ' ' || character === '"' || character === '\\' || !character.isWellFormed()
    if (choice === 0 && !needsEscape) text += character
    else if (choice === 1 && short !== undefined) text += `\\${short}`
    else
      for (const one of character.split('')) {
        const hex = one.charCodeAt(0).toString(16).padStart(4, '0')
        text += `\\u${choice === 3 ? hex.toUpperCase() : hex}`
      }
    unit += character.length
  }
  return text
}

test('names are duplicates exactly if JSON.parse reads them alike, in any spelling, length and depth', () => {
  const characters = ['a', 'b', '\\', '"', '/', '\n', 'é', '😀', '\ud83d', '\ude00', '\u005c', 'u0061', '\ufffd']
  const name = fc.oneof(
    fc.array(fc.constantFrom(...characters), { maxLength: 3 }).map((all) => all.join('')),
    fc.integer({ min: 40, max: 56 }).map((length) => 'x'.repeat(length)),
    fc.integer({ min: 14, max: 17 }).map((length) => 'é'.repeat(length)),
  )
  const member = fc.tuple(name, fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }))
  fc.assert(
    fc.property(fc.array(member, { maxLength: 20 }), fc.constantFrom(0, 1, 62, 63, 64, 65), (members, depth) => {
      const names = members.map(([one, choices]) => `"${spelled(one, choices)}"`)
      const object = `{${names.map((one) => `${one}:0`).join(',')}}`
      const text = `${'{"o":'.repeat(depth)}${object}${'}'.repeat(depth)}`
      const isUnique = new Set(names.map((one) => JSON.parse(one))).size === names.length
      const check = () => checkJson(bytes(text), { maxDepth: 128 })
      if (isUnique) assert.doesNotThrow(check)
      else assert.throws(check, /duplicate/)
    }),
    { numRuns: 5000 },
  )
})
