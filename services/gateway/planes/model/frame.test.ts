import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dialectOf } from './dialects/all.ts'
import { chat } from './dialects/chat.ts'
import { messages } from './dialects/messages.ts'
import { responses } from './dialects/responses.ts'
import { ModelFrame } from './frame.ts'
import { InvalidResponseError } from './invalid.ts'

const CHUNK = 'data: {"choices":[{"delta":{"content":"ab"}}]}\n\n'
const bytesOf = (text: string) => Buffer.from(text, 'latin1')

test('an event that is not valid in its dialect is refused', () => {
  const invalid = [
    [chat, 'data: {"choices":[{"delta":{"content":no}}]}\n\n'],
    [chat, 'data: {"choices":[]}{"choices":[]}\n\n'],
    [chat, 'data: {"choices":[],"choices":[]}\n\n'],
    [chat, 'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n'],
    [chat, ': \xff\n\n'],
    [chat, 'data: {}\n\n'],
    [chat, 'data: 1\n\n'],
    [chat, 'data: {"choices":[{"delta":"x"}]}\n\n'],
    [chat, 'data: {"choices":[{"delta":{},"finish_reason":1}]}\n\n'],
    [chat, 'data: {"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":0}}\n\n'],
    [chat, 'data: {"choices":[],"error":"failed"}\n\n'],
    [messages, 'event: ping\ndata: {"type":"message_stop"}\n\n'],
    [messages, 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0}\n\n'],
    [messages, 'event: message_start\ndata: {"type":"message_start"}\n\n'],
    [messages, 'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":"4"}}\n\n'],
    [messages, 'event: ping\ndata: {"type":"error"}\n\n'],
    [messages, 'data: {"index":1}\n\n'],
    [responses, 'data: {"type":"response.completed"}\n\n'],
    [responses, 'data: {"type":"response.completed","response":{"output":[],"usage":{"input_tokens":1.5}}}\n\n'],
    [responses, 'data: {"type":"response.output_text.delta","delta":7}\n\n'],
  ] as const
  for (const [dialect, event] of invalid)
    assert.throws(() => dialect.events.frame(bytesOf(event)), InvalidResponseError, event)
})

test('a comment in front of data does not hide the data', () => {
  const frame = chat.events.frame(bytesOf(`: comment\n${CHUNK}`))
  assert.deepEqual([frame.role, frame.value], ['partial', { choices: [{ delta: { content: 'ab' } }] }])
  const stop = messages.events.frame(bytesOf(': comment\ndata: {"type":"message_stop"}\n\n'))
  assert.equal(stop.role, 'final')
})

test('a whole response that is not valid in its dialect is refused', () => {
  const faultOf = (method: string, text: string) => {
    const { value } = ModelFrame.body(bytesOf(text))
    return dialectOf(method)?.answerFault(Object(value)) ?? null
  }
  for (const text of ['', '{"choices":[', '{"choices":[]} x', '{"choices":["\xff"]}', '{"choices":[],"choices":[]}'])
    assert.throws(() => ModelFrame.body(bytesOf(text)), InvalidResponseError, text)
  const invalid = [
    ['chat/completions', '{}'],
    ['chat/completions', '{"error":{"message":"failed"}}'],
    ['chat/completions', '{"choices":["x"]}'],
    ['chat/completions', '{"choices":[],"usage":{"prompt_tokens":"1"}}'],
    ['chat/completions', '{"choices":[],"usage":{"prompt_tokens_details":{"cached_tokens":-1}}}'],
    ['completions', '{"choices":{}}'],
    ['embeddings', '{"data":[1]}'],
    ['messages', '{"type":"message","content":"x"}'],
    ['messages', '{"type":"error","content":[]}'],
    ['messages', '{"type":"message","content":[],"usage":{"output_tokens":1e400}}'],
    ['messages/count_tokens', '{"input_tokens":"1"}'],
    ['responses', '{"output":[],"usage":[]}'],
  ] as const
  for (const [method, text] of invalid) assert.equal(typeof faultOf(method, text), 'string', text)
})
