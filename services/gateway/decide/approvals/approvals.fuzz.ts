import assert from 'node:assert/strict'
import { checkJson, JsonError } from '@plat/core'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { digestOf } from './question/digest.ts'
import { previewOf } from './question/preview.ts'
import { decodeEvent } from './store/events.ts'
import { callOf } from './testing/call.ts'

const args = near([
  '{"name":"a","n":9007199254740993,"m":"9007199254740993","x":1e400,"y":-0.0,"z":1.50}',
  '[{"__proto__":{"a":1}},"\\ud800","\\u0000",null,true,{"":{"":""}}]',
  '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a","_meta":{"progressToken":1}}}',
])

/** Planes pass on strict JSON only. */
function strict(text: string): boolean {
  try {
    checkJson(Buffer.from(text))
    return true
  } catch (error) {
    assert.ok(error instanceof JsonError)
    return false
  }
}

const event = fc.record(
  {
    t: fc.constantFrom('created', 'vote', 'granted', 'denied', 'used', 'returned', 'snapshot', '__proto__', 1, null),
    call: fc.anything(),
    by: fc.anything(),
    approval: fc.anything(),
    question: fc.anything(),
  },
  { requiredKeys: [] },
)

/** Any arguments have a digest or null, and a preview within its cap. */
export const target = fuzzTarget('gateway: approvals', {
  'a digest is stable and depends on the rule': fc.asyncProperty(args, fc.boolean(), async (text, get) => {
    if (!strict(text)) return
    const call = () =>
      callOf({ args: text, ...(get && { operation: 'mcp.get', method: 'resources/read', tool: null }) })
    const digest = await digestOf(call(), 'a')
    assert.equal(await digestOf(call(), 'a'), digest)
    assert.ok(digest === null || /^[0-9a-f]{64}$/.test(digest))
    if (digest !== null) assert.notEqual(await digestOf(call(), 'b'), digest)
  }),
  'a preview keeps its cap': fc.property(args, fc.nat(100), (text, maxBytes) => {
    if (!strict(text)) return
    for (const mode of ['full', 'redacted', 'hash', 'none'] as const) {
      const preview = previewOf(Buffer.from(text), { mode, maxBytes })
      if (mode === 'none') assert.equal(preview, null)
      else if (mode !== 'hash') assert.ok(Buffer.byteLength(preview?.text ?? '') <= maxBytes)
    }
  }),
  'an event is known as a whole or refused': fc.property(event, (value) => {
    try {
      const event = decodeEvent(value)
      if (event !== value) assert.equal(event.t, 'vote')
    } catch (error) {
      assert.match(String(error), /is not known to this version/)
    }
  }),
})
