import assert from 'node:assert/strict'
import {
  canonicalJson,
  checkJson,
  decodeBase64url,
  encodeBase64url,
  findSpan,
  formatDuration,
  glob,
  JsonError,
  parseDuration,
  parseLossless,
  parseQuantity,
  parseSessionSpiffeId,
  quantityToMicros,
  sessionSpiffeId,
  withoutMembers,
} from '@plat/core'
import fc from 'fast-check'
import { fuzzTarget, near } from './target.ts'

const json = near([
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":12345678901234567890}}}',
  '[1.0,-0,1e400,true,false,null,"\\u0061\\ud800\\n",{"a":{"a":{}},"b":[]}]',
  ' { "params" : { "x" : 1 , "x" : 2 } } ',
])
const bytes = fc.oneof(
  json.map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 60 }),
)

/** Null when the bytes were refused, and refused in the one way that is documented. */
function accepted(input: Uint8Array): string | null {
  try {
    checkJson(input)
    return Buffer.from(input).toString()
  } catch (error) {
    assert.ok(error instanceof JsonError && error.offset >= 0 && error.offset <= input.length)
    return null
  }
}

export const target = fuzzTarget('core', {
  'strict JSON accepts only what JSON.parse accepts': fc.property(bytes, (input) => {
    const text = accepted(input)
    if (text !== null) JSON.parse(text)
  }),
  'strict JSON refuses beyond the grammar only duplicates': fc.property(json, (text) => {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return
    }
    // Without duplicates and lone surrogates the text loses nothing when it is written again.
    if (text.isWellFormed() && JSON.stringify(value) === text) assert.equal(accepted(Buffer.from(text)), text)
  }),
  'a cut leaves JSON without the member': fc.property(bytes, fc.constantFrom('params', 'a', 'x', ''), (input, name) => {
    if (accepted(input) === null) return
    const left = withoutMembers(input, [[name], ['params', name]])
    checkJson(left)
    assert.equal(findSpan(left, [name]), null)
  }),
  'unchanged numbers are written as they were read': fc.property(bytes, (input) => {
    const text = accepted(input)
    if (text === null) return
    const once = JSON.stringify(parseLossless(text))
    assert.equal(JSON.stringify(parseLossless(once)), once)
  }),
  'the canonical form is a fixed point': fc.property(bytes, (input) => {
    const text = accepted(input)
    if (text === null || /\\u[dD][89a-fA-F]/.test(text)) return
    const once = canonicalJson(parseLossless(text))
    assert.equal(canonicalJson(parseLossless(once)), once)
  }),
  'base64url has one text a value': fc.property(near(['eyJhbGciOiJFZERTQSJ9', '_-8', 'AA==']), (text) => {
    const decoded = decodeBase64url(text)
    if (decoded !== null) assert.equal(encodeBase64url(decoded), text)
  }),
  'a duration is read, or refused without an error': fc.property(near(['1h30m', '250ms', '-1.5s', '1µs']), (text) => {
    const ms = parseDuration(text)
    if (ms === null) return
    const again = parseDuration(formatDuration(ms))
    assert.ok(again !== null && Math.abs(again - ms) <= Math.max(1e-6, Math.abs(ms) * 1e-12))
  }),
  'a quantity in micros is never more than it says': fc.property(
    near(['1.5Gi', '100m', '1e-3', '12E', '-0.5n']),
    (text) => {
      const [nanos, micros] = [parseQuantity(text), quantityToMicros(text)]
      if (nanos === null) assert.equal(micros, null)
      else if (micros !== null && nanos >= 0n) assert.ok(BigInt(micros) * 1000n <= nanos)
    },
  ),
  'a glob decides any text in linear time': fc.property(
    near(['a*b*', '**', 'read_*']),
    near(['aab', 'read_note']),
    (pattern, text) => {
      const expected = pattern.split('*').every((piece) => text.includes(piece))
      if (glob(pattern)(text)) assert.ok(expected)
      assert.ok(glob('*')(text) && glob(text.replaceAll(/[^*]/g, '') || '*')(text))
    },
  ),
  'a SPIFFE ID is read only as it would be written': fc.property(
    near(['spiffe://plat.local/ns/a/agent/b/session/c', '/../', '%2f']),
    (text) => {
      const name = parseSessionSpiffeId(text)
      if (name !== null) assert.equal(sessionSpiffeId(name), text)
    },
  ),
})
