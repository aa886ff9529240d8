import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runAtOnce } from '@plat/core'
import { InvalidResponseError } from '../invalid.ts'
import { translatorOf } from './all.ts'
import { AwsStreamSplitter } from './aws-stream.ts'
import type { StreamTranslator } from './streams.ts'
import { awsEvent, awsMessage, chunksOf, facts, sseEvent, streamed } from './testing.ts'
import type { Speech } from './translator.ts'

const of = (speaks: Speech, method = 'chat/completions') => translatorOf(speaks, method) ?? assert.fail(speaks)
const whole = (speaks: Speech, value: object | string) =>
  JSON.parse(
    Buffer.from(
      runAtOnce(of(speaks).answer(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)), facts, {})),
    ).toString(),
  )

const anthropicEvents = [
  {
    type: 'message_start',
    message: {
      id: 'msg',
      usage: { input_tokens: 7, cache_read_input_tokens: 4, cache_creation_input_tokens: 2, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'c2ln' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'ping' },
  { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hé' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: ' 🌍' } },
  { type: 'content_block_stop', index: 1 },
  {
    type: 'content_block_start',
    index: 2,
    content_block: { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
  },
  { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"query":"x"}' } },
  { type: 'content_block_start', index: 3, content_block: { type: 'tool_use', id: 'c1', name: 'weather', input: {} } },
  { type: 'content_block_delta', index: 3, delta: { type: 'input_json_delta', partial_json: '' } },
  { type: 'content_block_delta', index: 3, delta: { type: 'input_json_delta', partial_json: '{"at":' } },
  { type: 'content_block_delta', index: 3, delta: { type: 'input_json_delta', partial_json: '1}' } },
  { type: 'content_block_start', index: 4, content_block: { type: 'tool_use', id: 'c2', name: 'clock', input: {} } },
  { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 11 } },
  { type: 'message_stop' },
]
const geminiEvents = [
  { candidates: [{ content: { parts: [{ text: 'Hm.', thought: true }] } }], usageMetadata: { promptTokenCount: 13 } },
  { candidates: [{ content: { parts: [{ text: 'Hé' }] } }] },
  { candidates: [{ content: { parts: [{ text: ' 🌍' }] } }] },
  {
    candidates: [
      {
        content: {
          parts: [
            { functionCall: { id: 'c1', name: 'weather', args: { at: 1 } }, thoughtSignature: 'c2ln' },
            { functionCall: { id: 'c2', name: 'clock' } },
          ],
        },
        finishReason: 'STOP',
      },
    ],
    usageMetadata: { promptTokenCount: 13, cachedContentTokenCount: 4, candidatesTokenCount: 8, thoughtsTokenCount: 3 },
  },
]
const converseEvents: readonly (readonly [string, object])[] = [
  ['messageStart', { role: 'assistant' }],
  ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'Hm.' } } }],
  ['contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { signature: 'c2ln' } } }],
  ['contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'Hé' }, p: 'abcdef' }],
  ['contentBlockDelta', { contentBlockIndex: 1, delta: { text: ' 🌍' } }],
  ['contentBlockStop', { contentBlockIndex: 1 }],
  [
    'contentBlockStart',
    { contentBlockIndex: 2, start: { toolUse: { toolUseId: 's', name: 'search', type: 'server_tool_use' } } },
  ],
  ['contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '{"query":"x"}' } } }],
  ['contentBlockStart', { contentBlockIndex: 3, start: { toolUse: { toolUseId: 'c1', name: 'weather' } } }],
  ['contentBlockDelta', { contentBlockIndex: 3, delta: { toolUse: { input: '{"at":' } } }],
  ['contentBlockDelta', { contentBlockIndex: 3, delta: { toolUse: { input: '1}' } } }],
  ['contentBlockStart', { contentBlockIndex: 4, start: { toolUse: { toolUseId: 'c2', name: 'clock' } } }],
  ['messageStop', { stopReason: 'tool_use' }],
  [
    'metadata',
    { usage: { inputTokens: 7, outputTokens: 11, totalTokens: 24, cacheReadInputTokens: 4, cacheWriteInputTokens: 2 } },
  ],
]
const wrap = (value: object) => awsEvent('chunk', { bytes: Buffer.from(JSON.stringify(value)).toString('base64') })

const streams: readonly (readonly [Speech, Buffer])[] = [
  ['converse', Buffer.concat(converseEvents.map(([name, value]) => awsEvent(name, value)))],
  ['gemini', Buffer.concat(geminiEvents.map(sseEvent))],
  ['anthropic', Buffer.concat(anthropicEvents.map((one) => Buffer.from(`event: ${one.type}\n${sseEvent(one)}`)))],
  ['anthropic-vertex', Buffer.concat(anthropicEvents.map(sseEvent))],
  ['anthropic-bedrock', Buffer.concat(anthropicEvents.map(wrap))],
]

interface Call {
  index: number
  id: string
  type: string
  function: { name: string; arguments: string }
  extra_content?: object
}

/** Returns the message that a client assembles from the chunks. */
function messageOf(text: string) {
  const chunks = chunksOf(text)
  let [content, reasoning] = ['', '']
  const calls = new Map<number, Call>()
  for (const { choices } of chunks) {
    const delta = JSON.parse(JSON.stringify(choices[0]?.delta ?? {}))
    content += delta.content ?? ''
    reasoning += delta.reasoning_content ?? ''
    for (const call of delta.tool_calls ?? []) {
      const known = calls.get(call.index)
      if (known === undefined) calls.set(call.index, call)
      else known.function.arguments += call.function.arguments
    }
  }
  const finish = chunks.map(({ choices }) => choices[0]?.finish_reason ?? null).filter((one) => one !== null)
  return {
    content,
    reasoning,
    calls: [...calls.values()],
    finish,
    usage: chunks.at(-1)?.usage,
    role: chunks[0]?.choices[0]?.delta.role,
  }
}

test('the stream of every provider is that of a chat completion', () => {
  for (const [speaks, bytes] of streams) {
    const got = messageOf(streamed(of(speaks).stream(facts), [bytes]))
    const isGemini = speaks === 'gemini'
    const extra = isGemini ? { extra_content: { google: { thought_signature: 'c2ln' } } } : {}
    assert.deepEqual(
      got,
      {
        role: 'assistant',
        content: 'Hé 🌍',
        reasoning: 'Hm.',
        calls: [
          { index: 0, id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"at":1}' }, ...extra },
          { index: 1, id: 'c2', type: 'function', function: { name: 'clock', arguments: '{}' } },
        ],
        finish: ['tool_calls'],
        usage: {
          prompt_tokens: 13,
          completion_tokens: 11,
          total_tokens: 24,
          prompt_tokens_details: { cached_tokens: 4, ...(!isGemini && { cache_write_tokens: 2 }) },
          completion_tokens_details: { reasoning_tokens: isGemini ? 3 : 0 },
        },
      },
      speaks,
    )
  }
})

test('a stream is the same however its bytes are cut', () => {
  // The others are framed as these are.
  for (const [speaks, bytes] of streams.filter(([one]) => ['converse', 'gemini', 'anthropic-bedrock'].includes(one))) {
    const once = streamed(of(speaks).stream(facts), [bytes])
    for (let at = 1; at < bytes.length; at++) {
      assert.equal(
        streamed(of(speaks).stream(facts), [bytes.subarray(0, at), bytes.subarray(at)]),
        once,
        `${speaks} at ${at}`,
      )
    }
    const single = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1))
    assert.equal(streamed(of(speaks).stream(facts), single), once)
  }
})

test('text goes on as soon as its event is whole', () => {
  for (const [speaks, bytes] of streams) {
    const translator = of(speaks).stream(facts) ?? assert.fail()
    const at = [...Array(bytes.length).keys()].find((end) =>
      Buffer.from(runAtOnce(translator.push(bytes.subarray(end, end + 1)))).includes('Hé'),
    )
    assert.ok(at !== undefined && at < bytes.length / 2, speaks)
  }
})

test('a stream that was cut off before the provider said how it ends has no end', () => {
  const ends: readonly (readonly [Speech, string])[] = [
    ['converse', 'messageStop'],
    ['gemini', 'STOP'],
    ['anthropic', 'stop_reason'],
  ]
  for (const [speaks, word] of ends) {
    const bytes = streams.find(([one]) => one === speaks)?.[1] ?? assert.fail()
    for (let at = bytes.indexOf(word); at > 0; at -= 11)
      assert.ok(!streamed(of(speaks).stream(facts), [bytes.subarray(0, at)]).includes('[DONE]'), `${speaks} at ${at}`)
  }
})

test('a whole answer of every provider is a chat completion', () => {
  const usage = { input_tokens: 7, cache_read_input_tokens: 4, cache_creation_input_tokens: 2, output_tokens: 11 }
  const blocks = [
    { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
    { type: 'text', text: 'Hé 🌍' },
    { type: 'tool_use', id: 'c1', name: 'weather', input: { at: 1 } },
    { type: 'tool_use', id: 'c2', name: 'clock', input: {} },
  ]
  const message = { content: blocks, stop_reason: 'tool_use', usage }
  const answers: readonly (readonly [Speech, object])[] = [
    [
      'converse',
      {
        output: {
          message: {
            content: [
              { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'c2ln' } } },
              { citationsContent: { content: [{ text: 'Hé' }, { text: ' 🌍' }], citations: [] } },
              { toolUse: { toolUseId: 's', name: 'search', input: {}, type: 'server_tool_use' } },
              { toolUse: { toolUseId: 'c1', name: 'weather', input: { at: 1 } } },
              { toolUse: { toolUseId: 'c2', name: 'clock', input: {} } },
            ],
          },
        },
        stopReason: 'tool_use',
        usage: { inputTokens: 7, outputTokens: 11, cacheReadInputTokens: 4, cacheWriteInputTokens: 2 },
      },
    ],
    ['anthropic', message],
    ['anthropic-vertex', message],
    ['anthropic-bedrock', message],
  ]
  for (const [speaks, value] of answers) {
    const { choices, usage: reported, ...head } = whole(speaks, value)
    assert.deepEqual(head, { ...facts, object: 'chat.completion' })
    assert.deepEqual(choices, [
      {
        index: 0,
        logprobs: null,
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: 'Hé 🌍',
          refusal: null,
          reasoning_content: 'Hm.',
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"at":1}' } },
            { id: 'c2', type: 'function', function: { name: 'clock', arguments: '{}' } },
          ],
        },
      },
    ])
    assert.deepEqual(
      [reported.prompt_tokens, reported.completion_tokens, reported.prompt_tokens_details.cached_tokens],
      [13, 11, 4],
    )
  }
})

test('calls that Gemini gives no id get one each, and blocked prompts and numbers come through as they are', () => {
  const call = '{"functionCall":{"name":"pay","args":{"to":12345678901234567890,"sum":1.0}}}'
  const answer = whole('gemini', `{"candidates":[{"content":{"parts":[${call},${call}]},"finishReason":"STOP"}]}`)
  const calls: readonly Call[] = answer.choices[0].message.tool_calls
  assert.equal(new Set(calls.map(({ id }) => id)).size, 2)
  assert.equal(calls[0]?.function.arguments, '{"to":12345678901234567890,"sum":1.0}')
  const blocked = whole('gemini', { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 3 } })
  assert.deepEqual([blocked.choices[0].finish_reason, blocked.choices[0].message.content], ['content_filter', null])
})

test('every way to end has its word, and one that is not an end is a fault', () => {
  const converse = (stopReason: string) => ({ output: { message: { content: [] } }, stopReason })
  const gemini = (finishReason: string) => ({ candidates: [{ content: {}, finishReason }] })
  const anthropic = (stop_reason: string) => ({ content: [], stop_reason })
  const ends: readonly (readonly [Speech, object, string | null])[] = [
    ['converse', converse('end_turn'), 'stop'],
    ['converse', converse('max_tokens'), 'length'],
    ['converse', converse('guardrail_intervened'), 'content_filter'],
    ['converse', converse('malformed_model_output'), null],
    ['gemini', gemini('STOP'), 'stop'],
    ['gemini', gemini('MAX_TOKENS'), 'length'],
    ['gemini', gemini('SAFETY'), 'content_filter'],
    ['gemini', gemini('MALFORMED_FUNCTION_CALL'), null],
    ['anthropic', anthropic('end_turn'), 'stop'],
    ['anthropic', anthropic('refusal'), 'content_filter'],
    ['anthropic', anthropic('pause_turn'), null],
  ]
  for (const [speaks, value, reason] of ends) {
    if (reason === null) assert.throws(() => whole(speaks, value), InvalidResponseError)
    else assert.equal(whole(speaks, value).choices[0].finish_reason, reason)
  }
  for (const speaks of ['converse', 'gemini', 'anthropic'] as const)
    for (const text of ['{}', '[]', 'no', '{"error":{"message":"x"}}'])
      assert.throws(() => whole(speaks, text), InvalidResponseError)
})

test('a tool call without a valid name and id is an invalid response', () => {
  for (const id of [undefined, 7, { toString: 1 }]) {
    const content = [{ toolUse: { toolUseId: id, name: 'x' } }]
    assert.throws(
      () => whole('converse', { output: { message: { content } }, stopReason: 'tool_use' }),
      InvalidResponseError,
    )
    const blocks = [{ type: 'tool_use', id: 'c', name: id }]
    assert.throws(() => whole('anthropic', { content: blocks, stop_reason: 'tool_use' }), InvalidResponseError)
  }
})

test('an error in a stream, a wrong checksum and an impossible length are faults', () => {
  const fails = (translator: StreamTranslator | null, bytes: Uint8Array) =>
    assert.throws(() => runAtOnce(translator?.push(bytes) ?? assert.fail()), InvalidResponseError)
  const exception = { ':message-type': 'exception', ':exception-type': 'throttlingException' }
  for (const speaks of ['converse', 'anthropic-bedrock'] as const) {
    fails(of(speaks).stream(facts), awsMessage(exception, '{"message":"slow down"}'))
    const good = awsEvent('messageStop', { stopReason: 'end_turn' })
    for (let at = 0; at < good.length; at++) {
      const bad = Buffer.from(good)
      bad.writeUInt8(bad.readUInt8(at) ^ 0x10, at)
      fails(of(speaks).stream(facts), bad)
    }
  }
  fails(of('gemini').stream(facts), sseEvent({ error: { code: 500 } }))
  fails(of('anthropic').stream(facts), sseEvent({ type: 'error', error: { type: 'overloaded_error' } }))
  fails(of('gemini').stream(facts), Buffer.from('data: no json\n\n'))
})

test('messages of Bedrock come out of their wrapping as the events that Anthropic itself would send', () => {
  const bytes = Buffer.concat(anthropicEvents.map(wrap))
  const expected = anthropicEvents.map((one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`).join('')
  for (const at of [0, 5, 100, bytes.length - 3])
    assert.equal(
      streamed(of('anthropic-bedrock', 'messages').stream(facts), [bytes.subarray(0, at), bytes.subarray(at)]),
      expected,
    )
  assert.equal(of('anthropic-vertex', 'messages').stream(facts), null)
})

/** A message with a header of each type, as the AWS SDK for Python reads it: `messageStop`, `{"stopReason":"end_turn"}`. */
const EVERY_HEADER =
  'AAAApwAAAH4QmMDUCzpldmVudC10eXBlBwALbWVzc2FnZVN0b3ADeWVzAAJubwEBYgIFAXMDAAEBaQQAAAABAWwFAAAAAAAAAAADcmF3BgADYWJjAnRzCAAAAAAAAAAAAnV1' +
  'CQEBAQEBAQEBAQEBAQEBAQENOm1lc3NhZ2UtdHlwZQcABWV2ZW50eyJzdG9wUmVhc29uIjoiZW5kX3R1cm4ifXK60+Q='

test('headers of every type are read past, and those with text are known', () => {
  const [message, ...others] = new AwsStreamSplitter().push(Buffer.from(EVERY_HEADER, 'base64'))
  assert.deepEqual(
    [...(message?.headers ?? [])],
    [
      [':event-type', 'messageStop'],
      [':message-type', 'event'],
    ],
  )
  assert.equal(Buffer.from(message?.payload ?? []).toString(), '{"stopReason":"end_turn"}')
  assert.equal(others.length, 0)
})

test('a usage report that holds no counts is a fault', () => {
  const answers = [
    ['converse', { output: { message: { content: [] } }, stopReason: 'end_turn', usage: { inputTokens: '7' } }],
    ['gemini', { candidates: [{ finishReason: 'STOP' }], usageMetadata: { candidatesTokenCount: -1 } }],
  ] as const
  for (const [speaks, answer] of answers) {
    const translator = translatorOf(speaks, 'chat/completions') ?? assert.fail(speaks)
    assert.throws(
      () => runAtOnce(translator.answer(Buffer.from(JSON.stringify(answer)), facts, {})),
      InvalidResponseError,
    )
  }
})
