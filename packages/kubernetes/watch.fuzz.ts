import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget } from '../../test/fuzz/target.ts'
import { WatchLines } from './watch.ts'

const event = fc
  .record({ type: fc.constantFrom('ADDED', 'ERROR', ''), object: fc.json({ maxDepth: 3 }) })
  .map(({ type, object }) => `{"type":${JSON.stringify(type)},"object":${object}}`)
const line = fc.oneof(
  event,
  fc.string({ maxLength: 80 }),
  fc.constantFrom('{}', '[]', '{"type":"ADDED","object":{}', '\r'),
)

/** Any input gives events or one error, regardless of chunking. */
export const target = fuzzTarget('kubernetes: lines of a watch', {
  'pieces make no difference': fc.property(fc.array(line, { maxLength: 6 }), fc.nat(200), (lines, cut) => {
    const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''))
    const whole = outcome([bytes])
    const halves = outcome([bytes.subarray(0, cut), bytes.subarray(cut)])
    assert.equal(halves.fault, whole.fault)
    if (whole.fault === null) assert.deepEqual(halves.events, whole.events)
  }),
})

function outcome(pieces: readonly Uint8Array[]): { readonly events: readonly object[]; readonly fault: string | null } {
  const reader = new WatchLines()
  const events: object[] = []
  try {
    for (const piece of pieces) events.push(...reader.push(piece))
  } catch (error) {
    assert.ok(error instanceof Error)
    return { events, fault: error.message }
  }
  for (const { type, object } of reader.push(Buffer.from('\n'))) assert.fail(`${type} ${object} out of nothing`)
  return { events, fault: null }
}
