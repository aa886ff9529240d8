import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dialectOf } from '../dialects/all.ts'
import { ModelFrame } from '../frame.ts'
import { bodyOf } from '../testing.ts'
import { EmbeddingObserver, ResponseObserver } from './answer.ts'
import { promptOf } from './prompt.ts'

function prompt(method: string, value: object) {
  const dialect = dialectOf(method)
  assert.ok(dialect !== null)
  return promptOf(bodyOf(value, dialect))
}

/** Observed facts of these events, or of one whole response. */
function factsOf(method: string, answers: readonly object[], maxLength = 1000) {
  const answer = new ResponseObserver({ maxLength })
  const events = dialectOf(method)?.events
  for (const one of answers) {
    const json = JSON.stringify(one)
    const event = Buffer.from(`data: ${json}\n\n`)
    answer.frame(answers.length === 1 ? ModelFrame.body(Buffer.from(json)) : (events?.frame(event) ?? assert.fail()))
  }
  return answer.facts()
}

const text = (content: string) => ({ type: 'text', content })

test('prompts of every API are the same messages', () => {
  const args = { q: 'x' }
  const call = { type: 'tool_call', id: 'c1', name: 'find', arguments: args }
  const result = { type: 'tool_call_response', id: 'c1', response: 'found' }
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
  const messages = [
    { role: 'user', parts: [text('Look'), { type: 'image_url' }] },
    { role: 'assistant', parts: [call] },
    { role: 'tool', parts: [result] },
  ]
  const toolCall = { id: 'c1', type: 'function', function: { name: 'find', arguments: JSON.stringify(args) } }
  assert.deepEqual(
    prompt('chat/completions', {
      model: 'm',
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Look' }, image] },
        { role: 'assistant', content: null, tool_calls: [toolCall] },
        { role: 'tool', tool_call_id: 'c1', content: 'found' },
      ],
    }),
    { instructions: [], messages },
  )
  const [, assistant] = messages
  assert.deepEqual(
    prompt('messages', {
      model: 'm',
      max_tokens: 1,
      system: 'Be brief.',
      messages: [
        { role: 'user', content: 'Look' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'find', input: args }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'found' }] },
      ],
    }),
    {
      instructions: [text('Be brief.')],
      messages: [{ role: 'user', parts: [text('Look')] }, assistant, { role: 'user', parts: [result] }],
    },
  )
  assert.deepEqual(
    prompt('responses', {
      model: 'm',
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'Look' }] },
        { type: 'function_call', call_id: 'c1', name: 'find', arguments: JSON.stringify(args) },
        { type: 'function_call_output', call_id: 'c1', output: 'found' },
      ],
    }),
    {
      instructions: [text('Be brief.')],
      messages: [{ role: 'user', parts: [text('Look')] }, assistant, { role: 'tool', parts: [result] }],
    },
  )
  assert.deepEqual(prompt('completions', { model: 'm', prompt: ['a', [1, 2]] }), {
    instructions: [],
    messages: [{ role: 'user', parts: [text('a')] }],
  })
  assert.equal(prompt('embeddings', { model: 'm', input: 'a' }), null)
})

test('an answer of every API is the same message, whole or in pieces', () => {
  const call = { type: 'tool_call', id: 'c1', name: 'find', arguments: { q: 1 } }
  const parts = [text('Hello'), call]
  const names = { id: 'x1', model: 'm-1' }
  const of = (finish: string) => ({
    ...names,
    finishReasons: [finish],
    messages: [{ role: 'assistant', parts, finish_reason: finish }],
  })
  const fn = { name: 'find', arguments: '{"q":1}' }
  const message = { role: 'assistant', content: 'Hello', tool_calls: [{ id: 'c1', type: 'function', function: fn }] }
  const choice = (delta: object, finish: string | null = null) => ({
    ...names,
    choices: [{ index: 0, delta, finish_reason: finish }],
  })
  const chat = 'chat/completions'
  assert.deepEqual(factsOf(chat, [{ ...names, choices: [{ index: 0, message, finish_reason: 'stop' }] }]), of('stop'))
  const pieces = [
    choice({ content: 'Hel' }),
    choice({ content: 'lo' }),
    choice({ tool_calls: [{ index: 0, id: 'c1', function: { name: 'find', arguments: '{"q"' } }] }),
    choice({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
    choice({}, 'stop'),
  ]
  assert.deepEqual(factsOf(chat, pieces), of('stop'))
  const blocks = [
    { type: 'text', text: 'Hello' },
    { type: 'tool_use', id: 'c1', name: 'find', input: { q: 1 } },
  ]
  const whole = { ...names, type: 'message', role: 'assistant', content: blocks, stop_reason: 'end_turn' }
  assert.deepEqual(factsOf('messages', [whole]), of('end_turn'))
  const events = [
    { type: 'message_start', message: { ...names, type: 'message', content: [] } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
    { type: 'content_block_start', index: 1, content_block: { type: 'tool_use', id: 'c1', name: 'find', input: {} } },
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"q":1}' } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_stop' },
  ]
  assert.deepEqual(factsOf('messages', events), of('end_turn'))
  const output = [
    { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] },
    { type: 'function_call', call_id: 'c1', ...fn },
  ]
  const response = { ...names, status: 'completed', output }
  assert.deepEqual(factsOf('responses', [response]), of('completed'))
  const begun = { type: 'response.created', response: { ...names, status: 'in_progress', output: [] } }
  const delta = { type: 'response.output_text.delta', delta: 'Hello' }
  assert.deepEqual(factsOf('responses', [begun, delta, { type: 'response.completed', response }]), of('completed'))
})

test('content beyond the limit is not reported, and content is not kept unless it is configured', () => {
  const choice = (content: string) => ({ choices: [{ index: 0, delta: { content } }] })
  const pieces = [choice('x'.repeat(6)), choice('x'.repeat(6)), choice('')]
  assert.deepEqual(factsOf('chat/completions', pieces, 12).messages?.length, 1)
  assert.equal(factsOf('chat/completions', pieces, 11).messages, null)
  assert.equal(factsOf('chat/completions', pieces, 0).messages, null)
})

test('the model of an embedding is found without its numbers', () => {
  const model = (value: object) => {
    const answer = new EmbeddingObserver()
    answer.frame(ModelFrame.body(Buffer.from(JSON.stringify(value))))
    return answer.facts().model
  }
  const data = [{ embedding: Array.from({ length: 1000 }, (_, at) => at / 7) }]
  assert.deepEqual([model({ data, model: 'e-1', usage: {} }), model({ model: 'e-1', data })], ['e-1', 'e-1'])
  assert.equal(model({ data }), null)
})
