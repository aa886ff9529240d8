import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  checkJson,
  compactText,
  ElementValues,
  elementSpans,
  findSpan,
  findValue,
  parseStrict,
  withoutElements,
  withoutMembers,
} from '../index.ts'

const bytes = (text: string) => Buffer.from(text)

function found(text: string, ...path: string[]): string | null {
  const span = findSpan(bytes(text), path)
  return (
    span &&
    bytes(text)
      .subarray(...span)
      .toString()
  )
}

function without(text: string, ...paths: string[][]): string {
  return Buffer.from(withoutMembers(bytes(text), paths)).toString()
}

test('a span is the value as it was written, without the space around it', () => {
  const text = ' { "a" : { "b" : [1, {"b":2}] , "c":-1.50e1 }, "é":"\\"}" ,"t":true} '
  assert.equal(found(text, 'a', 'b'), '[1, {"b":2}]')
  assert.equal(found(text, 'a', 'c'), '-1.50e1')
  assert.equal(found(text, 'é'), '"\\"}"')
  assert.equal(found(text, 't'), 'true')
  assert.equal(found(text), text.trim())
})

test('a path that leads nowhere finds nothing', () => {
  for (const path of [['x'], ['a', 'x'], ['a', 'b', 'c'], ['l', '0'], ['aa'], ['']]) {
    assert.equal(found('{"a":{"b":1},"l":[1]}', ...path), null)
  }
  assert.equal(found('[1]', 'a'), null)
  assert.equal(found('{}', 'a'), null)
})

test('an escaped name is the name it stands for', () => {
  assert.equal(found(String.raw`{"p\u0061rams":{"n":1}}`, 'params', 'n'), '1')
  assert.equal(found(String.raw`{"params\u0000":0,"param":1,"\u0070arams":{"é":2}}`, 'params', 'é'), '2')
  assert.equal(found(String.raw`{"a\\":1,"a":2}`, 'a'), '2')
})

test('a span behind long strings is found, whatever escapes they end with', () => {
  for (let length = 44; length < 56; length++) {
    for (const end of ['', '\\"', '\\\\', '\\\\\\"', '\\"\\\\']) {
      const long = `"${'x'.repeat(length)}${end}"`
      assert.equal(found(`{"a":${long},${long}:1,"b":[${long}]}`, 'b'), `[${long}]`)
    }
  }
})

test('a span behind strings that hold JSON is found', () => {
  for (const length of [10, 47, 48, 1000, 1100, 5000]) {
    const text = JSON.stringify(JSON.stringify({ a: '\\"'.repeat(length), b: 'x'.repeat(length) }))
    assert.equal(found(`{"a":${text},"b":[${text}]}`, 'b'), `[${text}]`)
  }
})

test('an element is cut with one comma, at any position', () => {
  const text = '[ {"a":[1]} , "b,]" ,3,\tnull ]'
  const only = (...indexes: number[]) =>
    Buffer.from(withoutElements(bytes(text), 0, (at) => indexes.includes(at))).toString()
  assert.equal(only(0, 1, 2, 3), text)
  assert.equal(only(0), '[ {"a":[1]} ]')
  assert.equal(only(1, 3), '[ "b,]" ,null ]')
  assert.equal(only(3), '[ null ]')
  assert.equal(only(), '[ ]')
  assert.equal(Buffer.from(withoutElements(bytes('{"a":[]}'), 5, () => false)).toString(), '{"a":[]}')
})

test('removed elements leave the JSON of the others', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.jsonValue({ maxDepth: 2 }), fc.boolean())), fc.boolean(), (all, isSpaced) => {
      const json = bytes(JSON.stringify([all.map(([value]) => value)], null, isSpaced ? 2 : 0))
      const rest = withoutElements(json, json.indexOf('[', 1), (at) => all[at]?.[1] === true)
      checkJson(rest)
      assert.deepEqual(
        JSON.parse(Buffer.from(rest).toString()),
        JSON.parse(JSON.stringify([all.filter(([, isKept]) => isKept).map(([value]) => value)])),
      )
    }),
  )
})

test('a member is cut with one comma, at any position', () => {
  assert.equal(without('{"a":1,"b":2,"c":3}', ['a']), '{"b":2,"c":3}')
  assert.equal(without('{"a":1,"b":2,"c":3}', ['b']), '{"a":1,"c":3}')
  assert.equal(without('{"a":1,"b":2,"c":3}', ['c']), '{"a":1,"b":2}')
  assert.equal(without('{"a":1}', ['a']), '{}')
  assert.equal(without('{ "a" : 1 , "b" : 2 }', ['b']), '{ "a" : 1 }')
  assert.equal(without('{"a":1,"b":2}', ['a'], ['b']), '{}')
})

test('cutting several members at once gives what cutting one after the other gives', () => {
  const name = fc.constantFrom('a', 'b', 'c', '\n', 'é', '"')
  const value = fc.letrec<{ value: unknown; object: Record<string, unknown> }>((tie) => ({
    value: fc.oneof({ maxDepth: 3 }, fc.constantFrom(1, '}', [{ a: 1 }]), tie('object')),
    object: fc.dictionary(name, tie('value'), { maxKeys: 5, noNullPrototype: true }),
  })).object
  const spaced = fc.constantFrom(undefined, 1, '\t')
  fc.assert(
    fc.property(value, spaced, fc.array(fc.array(name, { minLength: 1, maxLength: 3 })), (object, space, paths) => {
      const text = JSON.stringify(object, null, space).replaceAll('"a"', String.raw`"\u0061"`)
      assert.equal(
        without(text, ...paths),
        paths.reduce((rest, path) => without(rest, path), text),
      )
    }),
  )
})

test('numbers beyond 2^53, member order and escapes around a cut stay as they were', () => {
  const text = String.raw`{"z":12345678901234567890,"caps":{"roots":{},"sampling":{},"x":1.0},"a":"\u00e9"}`
  assert.equal(
    without(text, ['caps', 'sampling'], ['caps', 'roots']),
    String.raw`{"z":12345678901234567890,"caps":{"x":1.0},"a":"\u00e9"}`,
  )
})

test('when nothing is cut the answer is the input itself', () => {
  const input = bytes('{"a":{"b":1}}')
  assert.equal(withoutMembers(input, [['x'], ['a', 'x'], ['a', 'b', 'c'], []]), input)
})

const data = fc.dictionary(
  fc.string({ maxLength: 6 }).filter((name) => name !== '__proto__'),
  fc.jsonValue({ maxDepth: 3 }),
  { minKeys: 1, maxKeys: 6, noNullPrototype: true },
)

test('for any object the span of a member reads as the member', () => {
  fc.assert(
    fc.property(data, fc.nat(), fc.constantFrom(0, 1), (object, pick, indent) => {
      const text = JSON.stringify(object, null, indent)
      const [name = '', value] = Object.entries(JSON.parse(text))[pick % Object.keys(object).length] ?? []
      assert.deepEqual(parseStrict(found(text, name) ?? 'missing'), value)
    }),
  )
})

test('for any object what is left after a cut is the object without the member', () => {
  fc.assert(
    fc.property(data, fc.nat(), fc.constantFrom(0, 1), (object, pick, indent) => {
      const text = JSON.stringify({ outer: object }, null, indent)
      const expected = JSON.parse(text)
      const name = Object.keys(object)[pick % Object.keys(object).length] ?? ''
      delete expected.outer[name]
      const left = withoutMembers(bytes(text), [['outer', name]])
      checkJson(left)
      assert.deepEqual(parseStrict(left), expected)
    }),
  )
})

test('the elements of an array are found one by one, whatever they contain', () => {
  const elements = (text: string) =>
    elementSpans(bytes(text), text.indexOf('[')).map(([start, end]) => text.slice(start, end))
  assert.deepEqual(elements('{"a": [ 1 , "],\\"" ,{"b":[2,3]},[] ] }'), ['1', '"],\\""', '{"b":[2,3]}', '[]'])
  assert.deepEqual(elements('[ ]'), [])
  assert.deepEqual(elementSpans(bytes('{}'), 0), [])
})

test('a step 0 of a path leads to the first element of an array', () => {
  const json = bytes(' {"a":[ [], {"b":1}],"c":[],"d":{"0":1}}')
  assert.equal(findValue(json, 0, ['a', 0]), json.indexOf('[],'))
  for (const path of [
    ['c', 0],
    ['a', 0, 0],
    ['d', 0],
  ] as const)
    assert.equal(findValue(json, 0, path), null)
})

test('a compact text differs from what is written by white space alone', () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom('', ' ', '\n\t\r '), (text, indent) => {
      const value: unknown = JSON.parse(text)
      const json = bytes(`[${JSON.stringify(value, null, indent)}]`)
      assert.equal(compactText(json, [1, json.length - 1]), JSON.stringify(value))
    }),
  )
  const written = '{ "a" : 1.0, "2":-0 ,"1" : [ 12345678901234567890 , "\\u0061 \\" " ] }'
  const json = bytes(written)
  assert.equal(compactText(json, [0, json.length]), '{"a":1.0,"2":-0,"1":[12345678901234567890,"\\u0061 \\" "]}')
})

test('values in elements are found from the first to the last, whichever are looked for', () => {
  const value = fc.jsonValue({ maxDepth: 2 })
  const element = fc.oneof(value, fc.record({ x: value, a: fc.record({ x: value, b: value, y: value }), y: value }))
  fc.assert(
    fc.property(fc.array(fc.tuple(element, fc.boolean())), fc.constantFrom('', ' '), (elements, indent) => {
      const list = elements.map(([one]) => one)
      const json = bytes(JSON.stringify({ list }, null, indent))
      const values = new ElementValues(json, findValue(json, 0, ['list']) ?? assert.fail(), ['a', 'b'])
      for (const [index, [, isWanted]] of elements.entries()) {
        if (!isWanted) continue
        const span = values.spanIn(index)
        const start = elementSpans(json, findValue(json, 0, ['list']) ?? assert.fail())[index]?.[0] ?? assert.fail()
        assert.equal(span?.[0] ?? null, findValue(json, start, ['a', 'b']))
        if (span !== null) JSON.parse(json.subarray(...span).toString())
      }
    }),
  )
})
