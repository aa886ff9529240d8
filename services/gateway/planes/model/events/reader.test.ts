import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '@plat/core'
import fc from 'fast-check'
import { type Frame, FrameRun } from '../../../call/index.ts'
import { chat } from '../dialects/chat.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { messages } from '../dialects/messages.ts'
import { responses } from '../dialects/responses.ts'
import { EventReader } from './reader.ts'
import { EventTemplates, TemplateCache } from './templates.ts'
import { readAlone } from './testing.ts'

/** A plain chunk, and pieces that make an event another one; broken and doubled where one runs into the next. */
const CHUNK = 'data: {"choices":[{"delta":{"content":"ab"}}]}\n\n'
const PIECES = [
  ...[CHUNK, CHUNK, 'data: {"choices":[],"usage":null}\n\n', 'data: {"choices":[],"usage":{}}\n\n', 'data: {}\n\n'],
  'data: {"choices":[]\ndata: ,"a":1}\n\n',
  ...[
    'data: {"choices":[],"error":{}}\n\n',
    'data: [DONE]\n\n',
    ': comment\n\n',
    'id: 1\n',
    '\r',
    '\n',
    'data: ',
    '{"',
  ],
]

function read(...reads: readonly (string | Buffer)[]): readonly Frame[] {
  return readAs(chat, ...reads)
}

function readAs({ events }: Dialect, ...reads: readonly (string | Buffer)[]): readonly Frame[] {
  const reader = new EventReader(events)
  return reads.flatMap((one) => reader.read(Buffer.from(one)))
}

function apart(frames: readonly Frame[]): readonly Frame[] {
  return frames.flatMap((frame) => (frame instanceof FrameRun ? frame.apart() : [frame]))
}

const rawOf = (frames: readonly Frame[]) => frames.map(({ raw }) => Buffer.from(raw ?? []).toString('latin1'))

const textsOf = (frames: readonly Frame[]) =>
  apart(frames).map(({ role, raw, value }) => [role, Buffer.from(raw ?? []).toString('latin1'), value])

test('events that are read together are the frames that each one is alone', () => {
  let runs = 0
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 12 }), (pieces) => {
      const frames = read(pieces.join(''))
      assert.deepEqual(textsOf(frames), textsOf(readAlone(chat.events, Buffer.from(pieces.join('')))))
      for (const frame of frames) {
        if (!(frame instanceof FrameRun)) continue
        const lengths = frame.apart().map(({ raw }) => raw?.length ?? 0)
        assert.deepEqual([frame.count, frame.shortest], [lengths.length, Math.min(...lengths)])
        runs++
      }
    }),
    { numRuns: 5000 },
  )
  assert.ok(runs > 200, `only ${runs} were runs`)
})

test('plain events are one run, however their texts and counts differ', () => {
  const chunk = (text: string, index: number) =>
    `data: {"id":"c-${index}","created":17,"choices":[{"index":${index},"delta":{"content":"${text}"}}]}\n\n`
  const texts = ['', 'a', 'a\\"b', '\\u00e9\\\\', 'é', 'long '.repeat(2000), ' x']
  const [run, ...others] = read(texts.map(chunk).join(''))
  assert.ok(run instanceof FrameRun && others.length === 0)
  assert.equal(run.count, texts.length)
  const contents = apart([run]).map(({ value }) => JSON.stringify(value).includes('"content"'))
  assert.deepEqual(contents, Array(texts.length).fill(true))
})

test('an event that begins like a checked one is refused as it is alone', () => {
  const before = 'data: {"id":"c1","n":1,"error":null,"choices":[{"index":0,"delta":{"content":"ab"}}]}\n\n'
  const changes: readonly (readonly [from: string, to: string])[] = [
    ['"ab"', '"a\\x"'],
    ['"ab"', '"a\\u00g0"'],
    ['"ab"', '"a\tb"'],
    ['"ab"', '"a\0b"'],
    ['"ab"', '"ab'],
    ['"ab"', '"ab\\"'],
    ['"ab"', '"a\xff"'],
    ['"ab"', '"a","content":"b"'],
    ['"ab"', '"ab"}},{"delta":"x"},{"delta":{"content":""'],
    ['"ab"', 'ab'],
    ['"ab"', "'ab'"],
    ['"index":0', '"index":00'],
    ['"index":0', '"index":01'],
    ['"index":0', '"index":-1'],
    ['"index":0', '"index":0.5'],
    ['"index":0', '"index":1e'],
    ['"index":0', '"index":'],
    ['"index":0', '"index":"0"'],
    ['"index":0', `"index":${'9'.repeat(17)}`],
    ['"n":1', `"n":${'9'.repeat(5000)}`],
    ['"n"', '"id"'],
    ['"n"', '"i\\u0064"'],
    ['null', '"failed"'],
    ['null', 'nul'],
    ['}\n\n', '}}\n\n'],
    ['}\n\n', '} 1\n\n'],
    ['"delta"', '"delta":{},"delta"'],
    ['data: ', 'data: 1\ndata: '],
  ]
  for (const [from, to] of changes) {
    const bytes = Buffer.from(before.replace(from, to), 'latin1')
    assert.throws(() => chat.events.frame(bytes), { name: 'InvalidResponseError' }, to)
    const frames = read(Buffer.concat([Buffer.from(before), bytes]))
    assert.deepEqual(
      textsOf(frames).map(([, raw]) => raw),
      bytes.includes(0xff) ? [] : [before],
      to,
    )
  }
})

test('an event like a checked one, with any value in place of a text or a count, is read as it is alone', () => {
  const odd = fc.constantFrom(
    '"',
    '\\',
    '\\"',
    '\\u0',
    '\n',
    '\r',
    '\t',
    '\0',
    '{',
    '}',
    ',',
    ':',
    '1',
    '-',
    'é',
    '\xa0',
    '',
  )
  const text = fc.array(fc.oneof(odd, fc.string({ maxLength: 3 })), { maxLength: 5 }).map((parts) => parts.join(''))
  const string = text.map((one) => JSON.stringify(one))
  const json = fc.oneof(
    { weight: 8, arbitrary: string },
    text.map((one) => `"${one}"`),
    fc.jsonValue().map((value) => JSON.stringify(value)),
    text,
  )
  const count = fc.oneof({ weight: 8, arbitrary: fc.nat().map(String) }, fc.double().map(String), text)
  const name = fc.oneof({ weight: 8, arbitrary: fc.constant('a') }, fc.constantFrom('type', 'usage', 'error'))
  let run = 0
  fc.assert(
    fc.property(fc.array(fc.tuple(json, count, name), { minLength: 2 }), (values) => {
      const events = values.map(
        ([content, index, member]) =>
          `data: {"${member}":null,"choices":[{"index":${index},"delta":{"content":${content}}}]}\n\n`,
      )
      const first = 'data: {"a":null,"choices":[{"index":0,"delta":{"content":""}}]}\n\n'
      const bytes = Buffer.from(first + events.join(''))
      const frames = read(bytes)
      assert.deepEqual(textsOf(frames), textsOf(readAlone(chat.events, bytes)))
      if (frames[0] instanceof FrameRun && frames[0].count > 2) run++
    }),
    { numRuns: 2000 },
  )
  assert.ok(run > 200, `only ${run} runs of three`)
})

test('a count that is just safe does not open the way for one that is not', () => {
  const event = (index: number) => `data: {"choices":[{"index":${index}}]}\n\n`
  const safe = event(Number.MAX_SAFE_INTEGER)
  assert.deepEqual(
    textsOf(read(safe + event(9_007_999_999_999_998))).map(([, raw]) => raw),
    [safe],
  )
})

test('an exponent does not open the way for a number that is not a count', () => {
  const event = (index: string) => `data: {"choices":[{"index":${index}}]}\n\n`
  assert.deepEqual(rawOf(read(event('1e5') + event('1e400'))), [event('1e5')])
})

test('an event that differs from a checked one by a byte is read as it is alone', () => {
  const first = `data: ${JSON.stringify({ a: [1, 'b', 2, true, null], choices: [{ index: 0, delta: { content: 'c' } }] })}\n\n`
  const byte = fc.oneof(fc.nat(255), fc.constantFrom(...Buffer.from('"\\,:[]{}0123456789-.e \n')))
  const edit = fc.record({ at: fc.nat(first.length - 1), cut: fc.nat(2), added: fc.array(byte, { maxLength: 2 }) })
  fc.assert(
    fc.property(edit, ({ at, cut, added }) => {
      const edited = Buffer.concat([
        Buffer.from(first.slice(0, at)),
        Buffer.from(added),
        Buffer.from(first.slice(at + cut)),
      ])
      const bytes = Buffer.concat([Buffer.from(first), edited, Buffer.from(first)])
      assert.deepEqual(textsOf(read(bytes)), textsOf(readAlone(chat.events, bytes)))
    }),
    { numRuns: 5000 },
  )
})

test('the shape learned from one event is used for the next ones', () => {
  const other = CHUNK.replace('ab', 'cd')
  const frames = read(CHUNK, other, `${other}data: [DONE]\n\n${other}`)
  assert.deepEqual(
    frames.map(({ role }) => role),
    ['partial', 'partial', 'partial', 'final'],
  )
  assert.deepEqual(
    textsOf(frames).map(([, raw]) => raw),
    [CHUNK, other, other, 'data: [DONE]\n\n'],
  )
})

const PIECE = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ab' } }
const OUTPUT = { type: 'response.output_text.delta', sequence_number: 4, delta: 'ab' }
const named = (data: JsonObject & { readonly type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

test('pieces of named events are one run, and every other event is a frame alone', () => {
  const piece = named(PIECE).replace('"ab"', '"c"').replace(':0', ':12')
  const others = ['ping', 'message_start', 'content_block_start', 'content_block_stop', 'message_delta'].map((type) =>
    named({ type, index: 1, message: {}, content_block: {}, usage: { output_tokens: 7 } }),
  )
  const stop = named({ type: 'message_stop' })
  assert.deepEqual(rawOf(readAs(messages, named(PIECE) + piece + others.join('') + piece + stop)), [
    named(PIECE) + piece,
    ...others,
    piece,
    stop,
  ])
  const output = named(OUTPUT).replace(':4', ':5')
  const done = named({ ...OUTPUT, type: 'response.output_text.done' })
  assert.deepEqual(rawOf(readAs(responses, named(OUTPUT) + output + done)), [named(OUTPUT) + output, done])
})

test('an event of another type or name than a checked one is read as it is alone', () => {
  const before = named(PIECE)
  const changes: readonly (readonly [from: RegExp, to: string])[] = [
    [/"content_block_delta"/, '"message_stop"'],
    [/"content_block_delta"/, '"error"'],
    [/"content_block_delta"/, '"content_block_delt\\u0061"'],
    [/^event: content_block_delta/, 'event: error'],
    [/^event: content_block_delta/, 'event: message_stop'],
    [/content_block_delta/g, 'message_stop'],
    [/content_block_delta/g, 'error'],
    [/"index"/, '"usage"'],
    [/"delta"/, '"error"'],
    [/"index":0/, '"index":"0"'],
  ]
  for (const [from, to] of changes) {
    const bytes = Buffer.from(before + before.replace(from, to) + before)
    assert.deepEqual(textsOf(readAs(messages, bytes)), textsOf(readAlone(messages.events, bytes)), `${from} ${to}`)
  }
})

test('an event whose type has an escaped name is not a template', () => {
  const escaped = (type: string) => `data: {"ty\\u0070e":"${type}","index":0,"delta":{}}\n\n`
  const bytes = Buffer.from(escaped('content_block_delta') + escaped('message_stop') + escaped('error'))
  const frames = readAs(messages, bytes)
  assert.deepEqual(textsOf(frames), textsOf(readAlone(messages.events, bytes)))
  assert.deepEqual(
    frames.map(({ role }) => role),
    ['partial', 'final'],
  )
})

test('the streams of an endpoint share templates, those of other endpoints and dialects do not', () => {
  const cache = new TemplateCache()
  const [endpoint, other] = [{}, {}]
  const parsed = { count: 0 }
  const counting = (dialect: Dialect): Dialect['events'] => ({
    ...dialect.events,
    frame: (event) => {
      parsed.count++
      return dialect.events.frame(event)
    },
  })
  const events = counting(chat)
  const countOf = (of: object, by: Dialect['events']) => {
    parsed.count = 0
    const [run] = new EventReader(by, cache.of(of, by)).read(Buffer.from(CHUNK))
    assert.ok(run instanceof FrameRun)
    return parsed.count
  }
  assert.deepEqual(
    [countOf(endpoint, events), countOf(endpoint, events), countOf(other, events), countOf(endpoint, counting(chat))],
    [1, 0, 1, 1],
  )
})

test('more kinds of events than are kept are read all the same', () => {
  const kinds = Array.from({ length: 20 }, (_, kind) => `data: {"choices":[],"a${kind}":0}\n\n`)
  const text = [...kinds, ...kinds, ...kinds.flatMap((kind) => [kind, kind, kinds[0] ?? ''])].join('')
  const frames = new EventReader(chat.events, new EventTemplates()).read(Buffer.from(text))
  assert.deepEqual([frames.length, rawOf(frames).join('')], [1, text])
  assert.deepEqual(textsOf(frames), textsOf(readAlone(chat.events, Buffer.from(text))))
})
