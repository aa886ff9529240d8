import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget } from '../../../../test/fuzz/target.ts'
import { decodeFile } from './format.ts'
import { keyOf, RevocationList } from './list.ts'

const scope = fc.constantFrom('jti', 'session', 'agent', 'namespace', 'user', 'tenant', 'all', '__proto__', 'x')
const name = fc.oneof(
  fc.constantFrom('a', 'ns/agent', 'ns/agent/s', '', '*', true, false, null),
  fc.string({ maxLength: 8 }),
)
const time = fc.oneof(
  fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-01T00:00:00.123456+02:00', '2026-99-01T00:00:00Z', 'now', null),
  fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
)
const entry = fc.record(
  {
    id: fc.oneof(fc.constantFrom('r1', 'r2', '__proto__'), fc.string({ maxLength: 4 })),
    target: fc.dictionary(scope, name, { maxKeys: 2 }),
    mode: fc.constantFrom('revoke', 'suspend', 'pause'),
    reason: fc.string({ maxLength: 4 }),
    createdAt: time,
    expiresAt: time,
    more: fc.anything(),
  },
  { requiredKeys: ['id', 'target', 'createdAt'] },
)
const file = fc.record({ version: fc.constantFrom(1, 1, 1, 2), revocations: fc.array(entry, { maxLength: 4 }) })
const text = fc.oneof(
  file.map((value) => JSON.stringify(value)),
  fc.tuple(file, fc.nat(), fc.string({ maxLength: 2 })).map(([value, at, cut]) => {
    const whole = JSON.stringify(value)
    const place = at % whole.length
    return whole.slice(0, place) + cut + whole.slice(place + 1)
  }),
)

/** No bytes make the decoder throw; accepted entries have a target, a valid end and can be listed. */
export const target = fuzzTarget('gateway: revocationsFile', {
  'either a whole list or problems': fc.property(text, (source) => {
    const read = decodeFile(Buffer.from(source))
    if ('problems' in read) {
      assert.ok(read.problems.length > 0)
      return
    }
    const list = new RevocationList()
    for (const one of read.entries) list.add(one)
    assert.equal(list.size, read.entries.length)
    assert.equal(list.inForce(Number.NEGATIVE_INFINITY).length, read.entries.length)
    for (const one of read.entries) assert.equal(Object.keys(one.target).join(), keyOf(one.target).scope)
  }),
})
