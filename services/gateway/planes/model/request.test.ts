import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isDenial } from '../../call/index.ts'
import { chat as chatDialect } from './dialects/chat.ts'
import { withMember } from './members.ts'
import { ModelBody, readModelBody, withMaxTokens } from './request.ts'

const messages = [{ role: 'user', content: 'hi' }]

function bodyOf(text: string): ModelBody {
  const body = readModelBody(Buffer.from(text), chatDialect)
  return isDenial(body) ? assert.fail(body.reason) : body
}

function bodyWith(more: object): ModelBody {
  return bodyOf(JSON.stringify({ model: 'm', messages, ...more }))
}

test('the facts read from a request are those that it states', () => {
  const text = JSON.stringify({ model: 'm', messages, stream: true, stream_options: { include_usage: true }, n: 3 })
  assert.deepEqual(bodyOf(text).request, {
    model: 'm',
    stream: true,
    usageAsked: true,
    maxTokens: null,
    maxTokensMember: null,
    choices: 3,
    inputTokensAtMost: text.length,
    bounded: true,
    images: null,
    openEnd: null,
    options: [],
  })
  assert.equal(bodyWith({ max_tokens: 5 }).request.maxTokens, 5)
  assert.equal(
    bodyWith({ max_tokens: null, max_completion_tokens: 6 }).request.maxTokensMember,
    'max_completion_tokens',
  )
})

test('a refusal names the member to mend', () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ['{', undefined],
    ['[]', undefined],
    ['{"model":"a","model":"b"}', undefined],
    ['{"model":7}', 'model'],
    ['{"model":""}', 'model'],
    ['{"stream":"yes"}', 'stream'],
    ['{"n":0}', 'n'],
    ['{"n":1.5}', 'n'],
    ['{"n":129}', 'n'],
    ['{"max_tokens":0}', 'max_tokens'],
    ['{"max_tokens":"5"}', 'max_tokens'],
    ['{"max_completion_tokens":-1}', 'max_completion_tokens'],
    ['{"max_tokens":9007199254740993}', 'max_tokens'],
    ['{"max_tokens":5,"max_completion_tokens":5}', 'max_tokens'],
    ['{"stream_options":[]}', 'stream_options'],
  ]
  for (const [text, param] of cases) {
    const denial = readModelBody(Buffer.from(text), chatDialect)
    assert.ok(isDenial(denial), text)
    assert.deepEqual([denial.code, denial.data?.param], ['invalid_request', param], text)
  }
})

test('a cost that the size of the request does not bound is marked as unbounded', () => {
  const part = (type: string) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, { type }] }] })
  for (const type of ['image_url', 'input_audio', 'file', 'whatever'])
    assert.equal(bodyWith(part(type)).request.bounded, false)
  assert.equal(bodyWith({ prediction: { type: 'content', content: 'x' } }).request.bounded, false)
  assert.equal(bodyWith({ audio: { voice: 'x', format: 'wav' } }).request.bounded, false)
  assert.equal(bodyWith({ messages: [{ role: 'assistant', audio: { id: 'a' } }] }).request.bounded, false)
  assert.equal(bodyWith(part('refusal')).request.bounded, true)
})

test('a limit is written where the caller wrote one, else as the model takes it; every other byte stays', () => {
  const text = '{ "max_tokens" : 9000, "seed": 1.000, "model":"m"}'
  const limited = withMaxTokens(bodyOf(text), 64, true)
  assert.equal(Buffer.from(limited.bytes).toString(), '{ "max_tokens" : 64, "seed": 1.000, "model":"m"}')
  assert.deepEqual([limited.request.maxTokens, limited.request.maxTokensMember], [64, 'max_tokens'])
  const plain = bodyOf(' {"seed": 1e2}')
  assert.equal(Buffer.from(withMaxTokens(plain, 7, false).bytes).toString(), ' {"max_tokens":7,"seed": 1e2}')
  assert.equal(Buffer.from(withMaxTokens(plain, 7, true).bytes).toString(), ' {"max_completion_tokens":7,"seed": 1e2}')
  assert.equal(Buffer.from(withMaxTokens(bodyOf('{}'), 7, false).bytes).toString(), '{"max_tokens":7}')
})

test('for any object a member is set, and nothing else changes', () => {
  const members = fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 6 })
  fc.assert(
    fc.property(members, fc.jsonValue(), fc.boolean(), (object, json, indented) => {
      const before = JSON.stringify(object, null, indented ? 2 : 0)
      const value: Record<string, unknown> = JSON.parse(before)
      for (const name of ['new', ...Object.keys(value)]) {
        const after = withMember({ bytes: Buffer.from(before), value }, name, JSON.stringify(json))
        const wanted = Object.fromEntries([...Object.entries(value), [name, JSON.parse(JSON.stringify(json))]])
        assert.deepEqual(JSON.parse(Buffer.from(after).toString()), wanted)
      }
    }),
    { numRuns: 200 },
  )
})

test('the reader returns a result for any bytes and does not throw', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const body = readModelBody(bytes, chatDialect)
      assert.ok(body instanceof ModelBody || isDenial(body))
    }),
  )
})
