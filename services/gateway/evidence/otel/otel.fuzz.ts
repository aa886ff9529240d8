import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { readParent, writeParent } from './context/parent.ts'
import { envelope, spanJson } from './export/encode.ts'
import { CLIENT, type Span } from './spans/span.ts'

const traceparent = near([
  '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  '01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-more',
  '00-00000000000000000000000000000000-0000000000000000-00',
])
const tracestate = near(['vendor=x', 'a=1,b=2', ''])
const anything = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
  fc.boolean(),
  fc.array(fc.string({ unit: 'binary' })),
)

export const target = fuzzTarget('otel', {
  'accepted trace headers can be propagated': fc.property(traceparent, tracestate, (text, state) => {
    const parent = readParent(text, state)
    if (parent === null) return
    assert.match(parent.state, /^[\x20-\x7e]{0,512}$/)
    assert.deepEqual(readParent(writeParent(parent), parent.state), parent)
  }),
  'every span is one JSON value of well-formed texts, in its place': fc.property(
    fc.dictionary(fc.string(), anything),
    fc.string({ unit: 'binary' }),
    (attributes, name) => {
      const { before, behind } = envelope(attributes, { name: 'plat', version: '1' })
      const json = `${before}${spanJson({ ...span, name, attributes })},${spanJson(span)}${behind}`
      assert.ok(json.isWellFormed() && !/\\ud[89a-f]/i.test(json.replaceAll('\\\\', '')))
      const { spans } = JSON.parse(json).resourceSpans[0].scopeSpans[0]
      assert.equal(spans.length, 2)
      assert.equal(spans[0].attributes.length, Object.keys(attributes).length)
    },
  ),
})

const span: Span = {
  name: 'n',
  kind: CLIENT,
  traceId: 'a'.repeat(32),
  spanId: 'b'.repeat(16),
  parentSpanId: null,
  traceState: '',
  startedAt: 1,
  endedAt: 2,
  attributes: {},
  dropped: 0,
  events: [],
  links: [],
  error: null,
}
