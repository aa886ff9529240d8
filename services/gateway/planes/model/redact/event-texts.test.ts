import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject, type JsonObject, runAtOnce } from '@plat/core'
import fc from 'fast-check'
import { deny, isDenial, type Redactor } from '../../../call/index.ts'
import { stepless } from '../../../call/testing/steps.ts'
import { EventTexts } from './event-texts.ts'
import { Pen } from './testing.ts'

const redacted = (json: Uint8Array) => {
  const text = Buffer.from(json).toString()
  if (text.includes('FORBIDDEN')) return deny('dlp_denied', 'no')
  return text.includes('secret') ? Buffer.from(text.replaceAll('secret', '[X]')) : json
}
const redactor: Redactor = { steps: (json) => stepless(redacted(json)), message: redacted, pieces: () => new Pen() }

function opened(method: string): EventTexts {
  const texts = EventTexts.of(method, redactor)
  assert.ok(texts !== null)
  return texts
}

/** The events that are forwarded for an event. */
function eventsOf(texts: EventTexts, event: JsonObject): readonly JsonObject[] {
  const json = Buffer.from(JSON.stringify(event))
  const result = runAtOnce(texts.take(event, json))
  assert.ok(!isDenial(result))
  const next: unknown = result.json === null ? event : JSON.parse(Buffer.from(result.json).toString())
  assert.ok(isObject(next))
  return [...result.before, next]
}

const block = (index: number, type: string, name: string) => (text: string) => ({
  type: 'content_block_delta',
  index,
  delta: { type, [name]: text },
})
const item = (type: string, output: number) => (delta: string) => ({
  type,
  output_index: output,
  content_index: 0,
  delta,
})

const streams = [
  {
    method: 'messages',
    texts: [
      [block(0, 'text_delta', 'text'), 'it is secret and secre'],
      [block(1, 'thinking_delta', 'thinking'), 'a secret, s'],
      [block(2, 'input_json_delta', 'partial_json'), '{"a":"secret"}'],
    ],
    stops: [0, 1, 2].map((index) => ({ type: 'content_block_stop', index })),
    read: (event: JsonObject) => Object.values(Object(event.delta)).slice(1).join(''),
    key: (event: JsonObject) => String(event.index),
  },
  {
    method: 'responses',
    texts: [
      [item('response.output_text.delta', 0), 'it is secret and secre'],
      [item('response.refusal.delta', 0), 'secretsecret'],
      [item('response.function_call_arguments.delta', 1), '{"a":"secret"}'],
    ],
    stops: ['response.output_text', 'response.refusal'].map((type) => ({
      type: `${type}.done`,
      output_index: 0,
      content_index: 0,
    })),
    read: (event: JsonObject) => String(event.delta),
    key: (event: JsonObject) => `${event.type}${event.output_index}`,
  },
] as const

for (const { method, texts, stops, read, key } of streams) {
  test(`texts of ${method} are separated wherever they are cut and mixed, and end where they stop`, () => {
    const turns = fc.array(fc.tuple(fc.nat(texts.length - 1), fc.integer({ min: 1, max: 6 })), { maxLength: 60 })
    fc.assert(
      fc.property(turns, fc.boolean(), (order, stop) => {
        const running = opened(method)
        const left: string[] = texts.map(([, text]) => text)
        const out: JsonObject[] = []
        const send = (which: number, size: number) => {
          const piece = left[which]?.slice(0, size) ?? ''
          left[which] = left[which]?.slice(size) ?? ''
          const event = texts[which]?.[0](piece)
          if (piece !== '' && event !== undefined) out.push(...eventsOf(running, event))
        }
        for (const [which, size] of order) send(which, size)
        for (let which = 0; which < texts.length; which++) send(which, 1000)
        if (stop) for (const event of stops) out.push(...eventsOf(running, event))
        const rest = running.end()
        assert.ok(!isDenial(rest))
        out.push(...rest)
        const assembled: Record<string, string> = {}
        for (const event of out) {
          if (event.delta !== undefined) assembled[key(event)] = (assembled[key(event)] ?? '') + read(event)
        }
        const expected = Object.fromEntries(
          texts.map(([event, text]) => [key(event('')), text.replaceAll('secret', '[X]')]),
        )
        assert.deepEqual(assembled, expected)
        // Held-back text is sent before the event that ends it.
        const [first] = stops
        const at = out.findIndex(({ type }) => type === first?.type)
        if (at !== -1)
          assert.ok(
            !out.slice(at + 1).some((event) => event.delta !== undefined && key(event) === key(texts[0][0](''))),
          )
      }),
    )
  })
}

test('events without pieces are looked at as a whole, and are the same where nothing was found', () => {
  const running = opened('responses')
  const whole = { type: 'response.completed', response: { id: 'r', output: [{ text: 'a secret' }] } }
  assert.match(JSON.stringify(eventsOf(running, whole)), /a \[X\]/)
  const plain = { type: 'response.created', response: { id: 'r' } }
  const json = Buffer.from(JSON.stringify(plain))
  assert.deepEqual(runAtOnce(running.take(plain, json)), { before: [], json: null })
  const signature = { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'abc' } }
  assert.deepEqual(eventsOf(opened('messages'), signature), [signature])
})

test('denied content ends the stream with a refusal, in a piece and in a whole event', () => {
  const running = opened('messages')
  const piece = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'FORBIDDEN things' } }
  assert.ok(isDenial(runAtOnce(running.take(piece, Buffer.from(JSON.stringify(piece))))))
  const whole = { type: 'message_start', message: { content: 'FORBIDDEN' } }
  assert.ok(isDenial(runAtOnce(running.take(whole, Buffer.from(JSON.stringify(whole))))))
})

test('streams of other endpoints are not supported', () => {
  assert.equal(EventTexts.of('embeddings', redactor), null)
})
