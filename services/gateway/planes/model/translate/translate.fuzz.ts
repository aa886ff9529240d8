import assert from 'node:assert/strict'
import { runAtOnce } from '@plat/core'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../../test/fuzz/target.ts'
import { isDenial } from '../../../call/index.ts'
import { EventTooLargeError } from '../../wire/sse.ts'
import { chat } from '../dialects/chat.ts'
import { generateContent } from '../dialects/generate.ts'
import { messages } from '../dialects/messages.ts'
import { responses } from '../dialects/responses.ts'
import { InvalidResponseError } from '../invalid.ts'
import { readModelBody } from '../request.ts'
import { refusalOf, translatorOf } from './all.ts'
import { awsEvent, chunksOf, facts, sseEvent, streamed } from './testing.ts'
import type { Speech } from './translator.ts'

const speech = fc.constantFrom<Speech>('converse', 'gemini', 'anthropic', 'anthropic-vertex', 'anthropic-bedrock')
const callers = [chat, messages, responses, generateContent]
const caller = fc.constantFrom(...callers)
const request = near([
  '{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]}]}',
  '{"messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"x","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"y"}]}',
  '{"tools":[{"type":"function","function":{"name":"x","parameters":{"type":"object"},"strict":true}}],"tool_choice":{"type":"function","function":{"name":"x"}}}',
  '{"model":"m","max_tokens":5,"system":[{"type":"text","text":"a"}],"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"x","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"y","is_error":true}]}],"tools":[{"name":"x","input_schema":{}}],"tool_choice":{"type":"any"}}',
  '{"contents":[{"role":"model","parts":[{"functionCall":{"name":"x","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"x","response":{}}},{"inlineData":{"mimeType":"image/png","data":"eA=="}}]}],"tools":[{"functionDeclarations":[{"name":"x"}]}],"generationConfig":{"maxOutputTokens":5}}',
  '{"model":"m","instructions":"a","input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"data:image/png;base64,eA=="}]},{"type":"function_call","call_id":"c","name":"x","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"y"}],"text":{"format":{"type":"json_schema","name":"a","schema":{}}}}',
  '{"model":"m","messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"schema":{}}},"stop":["a"],"__proto__":{"n":2},"constructor":1}',
])
const answer = near([
  '{"output":{"message":{"content":[{"text":"hi"},{"toolUse":{"toolUseId":"c","name":"x","input":{}}}]}},"stopReason":"end_turn","usage":{"inputTokens":1}}',
  '{"candidates":[{"content":{"parts":[{"text":"hi"},{"functionCall":{"name":"x","args":{"a":1.0}}}]},"finishReason":"STOP"}],"usageMetadata":{}}',
  '{"content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"c","name":"x","input":{}}],"stop_reason":"end_turn","usage":{"output_tokens":1}}',
  '{"error":{"message":"x"}}',
])
const piece = fc.oneof(
  answer.map((text) => Buffer.from(text)),
  answer.map((text) => Buffer.from(`data: ${text}\n\n`)),
  fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
  answer.map((text) => awsEvent('contentBlockDelta', { delta: { text } })),
  answer.map((text) => awsEvent('chunk', { bytes: Buffer.from(text).toString('base64') })),
)
const cuts = fc.array(fc.nat(), { maxLength: 6 })

function pieces(bytes: Buffer, at: readonly number[]): readonly Uint8Array[] {
  const places = [0, ...at.map((one) => one % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b)
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end))
}

/** The stream of a provider for a text in two pieces. */
function streamOf(speaks: Speech, texts: readonly string[]): Buffer {
  const converse = texts.map((text) => awsEvent('contentBlockDelta', { delta: { text } }))
  if (speaks === 'converse') return Buffer.concat([...converse, awsEvent('messageStop', { stopReason: 'end_turn' })])
  if (speaks === 'gemini')
    return Buffer.concat([
      ...texts.map((text) => sseEvent({ candidates: [{ content: { parts: [{ text }] } }] })),
      sseEvent({ candidates: [{ finishReason: 'STOP' }] }),
    ])
  const events = [
    ...texts.map((text) => ({ type: 'content_block_delta', delta: { type: 'text_delta', text } })),
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
  ]
  const wrap = (value: object) => awsEvent('chunk', { bytes: Buffer.from(JSON.stringify(value)).toString('base64') })
  return Buffer.concat(events.map((event) => (speaks === 'anthropic-bedrock' ? wrap(event) : sseEvent(event))))
}

/** Only an error of the translation may be thrown. */
function orGarbled(work: () => void): void {
  try {
    work()
  } catch (error) {
    assert.ok(error instanceof InvalidResponseError || error instanceof EventTooLargeError, String(error))
  }
}

export const target = fuzzTarget('model translation', {
  'any request is translated or refused by the name of a member': fc.property(
    speech,
    caller,
    request,
    (speaks, dialect, text) => {
      const body = readModelBody(Buffer.from(text), dialect)
      if (isDenial(body)) return
      const bytes = (translatorOf(speaks, dialect.method) ?? assert.fail()).request({
        body,
        model: 'm',
        reasoning: false,
        betas: null,
      })
      if (isDenial(bytes)) assert.equal(typeof bytes.data?.param, 'string')
      else assert.doesNotThrow(() => JSON.parse(Buffer.from(bytes).toString()))
    },
  ),
  'any response is translated or is an error': fc.property(speech, caller, answer, (speaks, { method }, text) => {
    const translator = translatorOf(speaks, method) ?? assert.fail()
    // Answers in the caller's API are relayed as they are, and parsed afterwards.
    const isSame = translator.sameHeaders
    orGarbled(() => {
      const bytes = runAtOnce(translator.answer(Buffer.from(text), facts, {}))
      return isSame ? bytes : JSON.parse(Buffer.from(bytes).toString())
    })
    assert.equal(typeof refusalOf(Buffer.from(text)), 'string')
  }),
  'any stream is translated or is an error': fc.property(
    speech,
    fc.constantFrom('chat/completions', 'messages', 'responses'),
    fc.array(piece),
    cuts,
    (speaks, method, parts, at) => {
      const stream = translatorOf(speaks, method)?.stream(facts) ?? null
      if (stream !== null) orGarbled(() => void streamed(stream, pieces(Buffer.concat(parts), at)))
    },
  ),
  'text is the same wherever its stream is cut': fc.property(
    speech,
    fc.array(fc.string({ unit: 'binary', minLength: 1 }), { maxLength: 3 }),
    cuts,
    (speaks, texts, at) => {
      const sayable = texts.map((text) => text.toWellFormed())
      const stream = translatorOf(speaks, chat.method)?.stream(facts) ?? null
      const chunks = chunksOf(streamed(stream, pieces(streamOf(speaks, sayable), at)))
      const joined = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
      assert.equal(joined, sayable.join(''))
    },
  ),
})
