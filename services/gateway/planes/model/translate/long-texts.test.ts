import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAtOnce } from '@plat/core'
import { InvalidResponseError } from '../invalid.ts'
import { translatorOf } from './all.ts'
import { LongTexts } from './long-texts.ts'
import { facts, sseEvent, streamed } from './testing.ts'

const LONG = 64 * 1024
/** Placeholders, characters that are escaped, and pairs of surrogates at each border. */
const TEXTS = ['\\u0061"\\u0061"', '\u{1f600}', 'a\u{1f600}', '"', '\n', '\ud800', '\udc00\ud800'].map((part) =>
  part.repeat(Math.ceil((2 * LONG + 7) / part.length)),
)

test('long texts and lists are written as JSON.stringify writes them', () => {
  const texts = new LongTexts()
  for (const text of [...TEXTS, '', 'a', '"\\u0061"', 'b'.repeat(LONG), 'b'.repeat(LONG - 1)]) {
    const value = { a: '"\\u0061"', text, list: [text, { text }, []], b: text }
    const late = { ...value, text: texts.of(text), list: texts.list([texts.of(text), { text: texts.of(text) }, []]) }
    assert.equal(runAtOnce(texts.write(JSON.stringify({ ...late, b: texts.of(text) }))), JSON.stringify(value))
  }
})

test('a long text is written in several steps', () => {
  const texts = new LongTexts()
  const steps = texts.write(JSON.stringify({ text: texts.of('"'.repeat(10 * LONG)) }))
  assert.equal([...steps].length, 10)
})

const METHODS = ['chat/completions', 'messages', 'generateContent', 'responses']
const event = (delta: object) => sseEvent({ choices: [{ index: 0, delta }] })
const END = sseEvent({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
const call = (args: string) => [{ index: 0, id: 'c', function: { name: 'a', arguments: args } }]
const streamOf = (method: string) => translatorOf('openai', method)?.stream(facts) ?? assert.fail()
/** Data of the events. */
const eventsOf = (text: string): readonly unknown[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data))

test('long texts and arguments reach callers of every API unchanged, whole and streamed', () => {
  for (const text of TEXTS.slice(0, 2)) {
    const args = JSON.stringify({ text })
    const message = { reasoning_content: text, content: text, tool_calls: call(args) }
    const whole = Buffer.from(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    // Chat completions are the provider's API.
    for (const method of METHODS.slice(1)) {
      const translator = translatorOf('openai', method) ?? assert.fail()
      const answer: unknown = JSON.parse(Buffer.from(runAtOnce(translator.answer(whole, facts, {}))).toString())
      const events = eventsOf(streamed(streamOf(method), [event(message), END]))
      for (const written of [JSON.stringify(answer), JSON.stringify(events)]) {
        assert.ok(written.split(JSON.stringify(text)).length > 2, method)
        const escaped = JSON.stringify(args).slice(1, -1)
        assert.ok(written.includes(method === 'responses' || written.includes('partial_json') ? escaped : args), method)
      }
    }
  }
})

test('the items of a streamed response are bounded, also without texts', () => {
  const named = { name: 'a'.repeat(LONG), arguments: '' }
  const parts = Array.from({ length: 300 }, (_, index) => event({ tool_calls: [{ index, id: 'c', function: named }] }))
  assert.throws(() => streamed(streamOf('responses'), [...parts, END]), InvalidResponseError)
})

test('arguments of a streamed call that waits for its end are bounded', () => {
  const parts = Array.from({ length: 40 }, () => event({ tool_calls: call('a'.repeat(LONG)) }))
  assert.throws(() => streamed(streamOf('generateContent'), parts), InvalidResponseError)
})
