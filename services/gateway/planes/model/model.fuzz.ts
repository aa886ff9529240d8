import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { isDenial } from '../../call/index.ts'
import { chat as chatDialect } from './dialects/chat.ts'
import { ModelFrame } from './frame.ts'
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
])

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
  'any event is a frame that keeps its bytes': fc.property(event, (text) => {
    const bytes = Buffer.from(text)
    const frame = ModelFrame.event(bytes)
    assert.equal(frame.raw, bytes)
    assert.doesNotThrow(() => frame.value)
  }),
})
