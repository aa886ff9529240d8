import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../../test/fuzz/target.ts'
import { isDenial } from '../../../call/index.ts'
import type { ModelFrame } from '../frame.ts'
import { InvalidResponseError } from '../invalid.ts'
import { readModelBody, withMaxTokens } from '../request.ts'
import { dialectOf } from './all.ts'

const methods = ['completions', 'responses', 'embeddings', 'messages', 'messages/count_tokens'] as const

const request = near([
  '{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}',
  '{"model":"m","input":[{"type":"message","content":[{"type":"input_text","text":"hi"}]}],"max_output_tokens":5}',
  '{"model":"m","prompt":["a",["b"],1],"n":2,"best_of":3,"stream_options":{"include_usage":false}}',
  '{"model":"e","input":[1,2,3],"previous_response_id":null,"background":false}',
])
const event = near([
  'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
  'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":3}}\n\n',
  'event: response.completed\ndata: {"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":2}}}\n\n',
  'data: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
  ': ping\n\n',
])
const method = fc.constantFrom(...methods)

export const target = fuzzTarget('model dialects', {
  'any request is read or refused, and a limit written into it leaves it readable': fc.property(
    method,
    request,
    (name, text) => {
      const dialect = dialectOf(name) ?? assert.fail(name)
      const body = readModelBody(Buffer.from(text), dialect)
      if (isDenial(body)) return
      assert.ok(body.request.choices >= 1 && body.request.inputTokensAtMost === Buffer.byteLength(text))
      assert.ok(!isDenial(readModelBody(withMaxTokens(body, 77, false).bytes, dialect)))
    },
  ),
  'any event is invalid, or a frame that keeps its bytes and reports whole numbers or nothing': fc.property(
    method,
    event,
    (name, text) => {
      const dialect = dialectOf(name) ?? assert.fail(name)
      const bytes = Buffer.from(text)
      let frame: ModelFrame
      try {
        frame = dialect.events.frame(bytes)
      } catch (error) {
        assert.ok(error instanceof InvalidResponseError, String(error))
        return
      }
      assert.equal(frame.raw, bytes)
      const report = dialect.report(frame, null)
      if (report === null) return
      for (const count of Object.values(report.usage)) assert.ok(Number.isSafeInteger(count))
    },
  ),
})
