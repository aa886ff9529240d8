import assert from 'node:assert/strict'
import { isObject, parseStrict } from '@plat/core'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { type Frame, FrameRun, isDenial } from '../../call/index.ts'
import { dialectOf } from './dialects/all.ts'
import { chat as chatDialect } from './dialects/chat.ts'
import { EventReader } from './events/reader.ts'
import { readAlone } from './events/testing.ts'
import { ModelFrame } from './frame.ts'
import { InvalidResponseError } from './invalid.ts'
import { readModelBody, withMaxTokens } from './request.ts'

const request = near([
  '{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":false}}',
  '{"max_tokens":10,"n":2,"model":"m","messages":[{"role":"user","content":[{"type":"image_url"}]}]}',
  '{ "max_completion_tokens" : 1e2 , "seed" : 12345678901234567890 }',
  '{"__proto__":{"max_tokens":1},"max_tokens":null,"tools":[{"type":"web_search"}]}',
])
const event = near([
  'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n',
  'data: [DONE]\n\n',
  ': comment\n\n',
  'data: {"error":{"message":"x"}}\n\n',
  'data: {"id":"c1","created":17,"choices":[{"index":0,"delta":{"content":"a\\n"}}]}\n\n',
  'data: {"id":"c1","created":17,"choices":[{"index":1,"delta":{"content":"\\u0062"}}]}\n\n',
])
const response = near([
  '{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}',
  '{"type":"message","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":1,"output_tokens":2,"cache_creation":{"ephemeral_1h_input_tokens":1}}}',
  '{"output":[{"type":"message"}],"usage":{"input_tokens":1,"output_tokens":2,"input_tokens_details":{"cached_tokens":1}}}',
  '{"data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":1}}',
  '{"input_tokens":7}',
])

/** Null: it is invalid, and said so. */
function frameOf(read: () => ModelFrame): ModelFrame | null {
  try {
    return read()
  } catch (error) {
    assert.ok(error instanceof InvalidResponseError, String(error))
    return null
  }
}

export const target = fuzzTarget('model', {
  'any request is read or refused, and a limit written into it is the only change': fc.property(request, (text) => {
    const body = readModelBody(Buffer.from(text), chatDialect)
    if (isDenial(body)) return
    const limited = readModelBody(withMaxTokens(body, 77, true).bytes, chatDialect)
    assert.ok(!isDenial(limited), 'what was accepted stays acceptable')
    assert.equal(limited.request.maxTokens, 77)
    const { max_tokens: _, max_completion_tokens: __, ...others } = body.value
    const { max_tokens: ___, max_completion_tokens: ____, ...same } = limited.value
    assert.deepEqual(same, others)
  }),
  'any event is a frame that keeps its bytes, or is invalid': fc.property(event, (text) => {
    const bytes = Buffer.from(text)
    const frame = frameOf(() => chatDialect.events.frame(bytes))
    if (frame === null) return
    assert.equal(frame.raw, bytes)
    if (frame.json !== null) assert.deepEqual(JSON.parse(Buffer.from(frame.json).toString()), frame.value)
  }),
  'events that are read together are those that are read one by one': fc.property(fc.array(event), (texts) => {
    const bytes = Buffer.from(texts.join(''))
    const read = new EventReader(chatDialect.events).read(bytes)
    const apart = read.flatMap<Frame>((frame) => (frame instanceof FrameRun ? frame.apart() : [frame]))
    assert.deepEqual(
      apart.map(({ role, value, raw }) => [role, value, Buffer.from(raw ?? [])]),
      readAlone(chatDialect.events, bytes).map(({ role, value, raw }) => [role, value, Buffer.from(raw)]),
    )
  }),
  'a whole response that passes is strict JSON of its dialect': fc.property(
    fc.constantFrom('chat/completions', 'completions', 'responses', 'embeddings', 'messages', 'messages/count_tokens'),
    response,
    (method, text) => {
      const dialect = dialectOf(method) ?? assert.fail()
      const frame = frameOf(() => ModelFrame.body(Buffer.from(text)))
      if (frame === null) return
      assert.deepEqual(parseStrict(Buffer.from(text)), frame.value)
      if (!isObject(frame.value) || dialect.answerFault(frame.value) !== null) return
      const report = dialect.report(frame, null)
      if (report !== null) for (const count of Object.values(report.usage)) assert.ok(Number.isSafeInteger(count))
    },
  ),
})
