import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { type Log, silentLog } from '@plat/process'
import fc from 'fast-check'
import { LineBudget, LineReader } from './child/lines.ts'
import { escaped, StderrLog } from './child/stderr.ts'
import { inOneLine, readMessage, replaced, textOf } from './message.ts'
import { Failures } from './sessions/failures.ts'
import { Sessions } from './sessions/sessions.ts'

/** Lines and cut lines of these chunks. */
function linesOf(chunks: readonly Uint8Array[], maxBytes: number): string[] {
  const lines: string[] = []
  const reader = new LineReader(maxBytes, {
    line: (bytes) => lines.push(Buffer.from(bytes).toString('latin1')),
    tooLong: (start) => lines.push(`cut ${Buffer.from(start).toString('latin1')}`),
  })
  for (const chunk of chunks) reader.push(chunk)
  reader.end()
  return lines
}

test('lines are the same for any chunks, and none is longer than the limit', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 60 })
  fc.assert(
    fc.property(text, fc.array(fc.nat(60)), fc.integer({ min: 1, max: 8 }), (whole, cuts, maxBytes) => {
      const bytes = Buffer.from(whole)
      const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).toSorted((a, b) => a - b), bytes.length]
      const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
      const expected = whole
        .split('\n')
        .map((line) => (line.length > maxBytes ? `cut ${line.slice(0, maxBytes)}` : line))
      if (expected.at(-1) === '') expected.pop()
      assert.deepEqual(linesOf(chunks, maxBytes), expected)
    }),
  )
})

test('long unfinished lines share a budget, and short ones are read in any case', () => {
  const budget = new LineBudget(100_000)
  const cut: string[] = []
  const reader = (name: string) =>
    new LineReader(1_000_000, { line: () => {}, tooLong: () => void cut.push(name) }, budget)
  const [first, second, third] = [reader('first'), reader('second'), reader('third')]
  first.push(Buffer.alloc(160_000, 'a'))
  second.push(Buffer.alloc(160_000, 'a'))
  third.push(Buffer.alloc(60_000, 'a'))
  assert.deepEqual(cut, ['second'])
  first.push(Buffer.from('\n'))
  third.push(Buffer.alloc(100_000, 'a'))
  assert.deepEqual(cut, ['second'], 'a complete line makes room')
})

test('only one JSON-RPC message in strict JSON is a message', () => {
  const kind = (text: string | Uint8Array) => readMessage(Buffer.from(text))?.kind ?? null
  assert.deepEqual(
    [
      '{"jsonrpc":"2.0","id":1,"method":"a"}',
      '{"jsonrpc":"2.0","method":"a"}',
      '{"jsonrpc":"2.0","id":"x","result":{}}',
      '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}',
    ].map(kind),
    ['request', 'notification', 'response', 'response'],
  )
  const wrong = ['', '[]', '{"jsonrpc":"2.0"}', '{"id":1,"method":"a"}', '{"jsonrpc":"2.0","id":{},"method":"a"}']
  const both = '{"jsonrpc":"2.0","id":1,"result":{},"error":{}}'
  const twice = '{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}'
  for (const text of [...wrong, both, twice]) assert.equal(kind(text), null, text)
  assert.equal(kind(Buffer.from([0x7b, 0xff, 0x7d])), null)
})

test('replacing an id leaves every other byte unchanged, and a message becomes one line', () => {
  const message = Buffer.from('{\r\n "id" : 12345678901234567890,\n "x": "a\\nb" }')
  assert.equal(textOf(replaced(message, ['id'], '7')), '{\r\n "id" : 7,\n "x": "a\\nb" }')
  assert.equal(textOf(inOneLine(message)), '{   "id" : 12345678901234567890,  "x": "a\\nb" }')
  assert.equal(replaced(message, ['absent'], '7'), message)
})

test('text of stderr is escaped, cut before a secret could be, and bounded over time', () => {
  const lines: string[] = []
  let dropped = 0
  const log: Log = {
    ...silentLog,
    info: (fields) => void lines.push(String(Reflect.get(fields, 'stderr'))),
    warn(fields) {
      dropped += Number(Reflect.get(fields, 'lines'))
    },
  }
  const clock = new TestClock()
  const pem = 'first-line-of-key\nsecond-line-of-key'
  const errors = new StderrLog({ log, clock, secrets: ['token-1', 'token-1-longer', pem, 'a'] })
  errors.push(Buffer.from('token-1-longer token-1 a\nsecond-line-of-key\n\u001b[31m\u202e\u0085\n'))
  errors.push(Buffer.from(`${'x'.repeat(4090)}token-1-longer\n`))
  assert.deepEqual(lines.slice(0, 3), ['[removed] [removed] a', '[removed]', '\\u001b[31m\\u202e\\u0085'])
  assert.ok(lines[3]?.endsWith('x…'), 'the beginning of the secret is cut away')
  for (let count = 0; count < 2000; count++) errors.push(Buffer.from(`${'y'.repeat(900)}\n`))
  const logged = lines.length
  assert.ok(logged < 200)
  clock.advance(10_000)
  errors.push(Buffer.from('again\n'))
  assert.deepEqual([lines.length, dropped], [logged + 1, 2004 - logged])
  assert.equal(escaped('plain\ttext\r'), 'plain\\u0009text')
})

test('starts are delayed exponentially for one caller, and a long run begins anew', () => {
  const clock = new TestClock()
  const failures = new Failures(clock, systemIds(clock))
  const pauses = Array.from({ length: 12 }, () => failures.failed('a', 0))
  for (const [index, pause] of pauses.entries()) {
    const whole = Math.min(60_000, 500 * 2 ** index)
    assert.ok(pause >= whole / 2 - 1 && pause <= whole, `${index}: ${pause}`)
  }
  assert.ok(failures.waitMs('a') > 0)
  assert.equal(failures.waitMs('b'), 0)
  clock.advance(60_000)
  assert.equal(failures.waitMs('a'), 0)
  assert.ok(failures.failed('a', 60_000) <= 500)
})

test('a session belongs to its caller, and too many end the one that was unused for longest', () => {
  const ended: string[] = []
  const clock = new TestClock()
  const sessions = new Sessions(systemIds(clock), ({ id }) => ended.push(id))
  const caller = { agent: 'a', session: 's' }
  const [first, second] = [0, 1].map(() => sessions.create(caller, Buffer.from('{}')))
  assert.ok(first !== undefined && second !== undefined)
  assert.equal(sessions.use(first.id, { agent: 'a', session: 'other' }), null)
  assert.equal(sessions.use(first.id, caller), first)
  for (let count = 0; count < 63; count++) sessions.create(caller, Buffer.from('{}'))
  assert.deepEqual(ended, [second.id])
  sessions.create({ agent: 'a', session: 'other' }, Buffer.from('{}'))
  assert.equal(ended.length, 1, 'another caller has a separate share')
  assert.equal(sessions.create(caller, Buffer.alloc(20_000)).handshake, null)
})
