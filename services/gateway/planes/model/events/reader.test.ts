import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Frame, FrameRun } from '../../../call/index.ts'
import { chat } from '../dialects/chat.ts'
import { EventReader } from './reader.ts'
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
  const reader = new EventReader(chat.events)
  return reads.flatMap((one) => reader.read(Buffer.from(one)))
}

function apart(frames: readonly Frame[]): readonly Frame[] {
  return frames.flatMap((frame) => (frame instanceof FrameRun ? frame.apart() : [frame]))
}

const shown = (frames: readonly Frame[]) =>
  apart(frames).map(({ role, raw, value }) => [role, Buffer.from(raw ?? []).toString('latin1'), value])

test('events that are read together are the frames that each one is alone', () => {
  let runs = 0
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 12 }), (pieces) => {
      const frames = read(pieces.join(''))
      assert.deepEqual(shown(frames), shown(readAlone(chat.events, Buffer.from(pieces.join('')))))
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
      shown(frames).map(([, raw]) => raw),
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
      assert.deepEqual(shown(frames), shown(readAlone(chat.events, bytes)))
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
    shown(read(safe + event(9_007_999_999_999_998))).map(([, raw]) => raw),
    [safe],
  )
})

test('what one read taught holds for the reads after it', () => {
  const other = CHUNK.replace('ab', 'cd')
  const frames = read(CHUNK, other, `${other}data: [DONE]\n\n${other}`)
  assert.deepEqual(
    frames.map(({ role }) => role),
    ['partial', 'partial', 'partial', 'final'],
  )
  assert.deepEqual(
    shown(frames).map(([, raw]) => raw),
    [CHUNK, other, other, 'data: [DONE]\n\n'],
  )
})
