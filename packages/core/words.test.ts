import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  buildInfo,
  closest,
  decodeBase64url,
  encodeBase64url,
  glob,
  isSpiffeSegment,
  isTrustDomain,
  parseSessionSpiffeId,
  reasonOf,
  rfc3339,
  rfc3339Micros,
  sessionSpiffeId,
} from './index.ts'

test('base64url decodes its own output and nothing else', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      assert.deepEqual(new Uint8Array(decodeBase64url(encodeBase64url(bytes)) ?? []), bytes)
    }),
  )
  for (const bad of ['A', 'AA==', 'AA=', 'AB', 'AAB', 'A A', 'AA\n', '+w', '/w', 'AAAAA', 'é', '_w '])
    assert.equal(decodeBase64url(bad), null, bad)
  assert.deepEqual([...(decodeBase64url('_-8') ?? [])], [0xff, 0xef])
  assert.equal(decodeBase64url('')?.length, 0)
})

test('a second encoding of the same bytes is never accepted', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'AQgw_-Z9+/= ') }), (text) => {
      const bytes = decodeBase64url(text)
      if (bytes !== null) assert.equal(encodeBase64url(bytes), text)
    }),
  )
})

test('a star matches any run of characters and nothing else is special', () => {
  const matches: [string, string[], string[]][] = [
    ['notes', ['notes'], ['note', 'notess', 'Notes', '']],
    ['*', ['', 'a', 'a/b\n'], []],
    ['read_*', ['read_', 'read_note'], ['read', 'aread_x']],
    ['*_note', ['_note', 'add_note'], ['add_notes']],
    ['a*b*c', ['abc', 'a-b-c', 'abbcc'], ['ac', 'acb', 'abcd']],
    ['a*a', ['aa', 'aba'], ['a']],
    ['**', ['', 'x'], []],
    ['a.c?[x]', ['a.c?[x]'], ['abc', 'a.cx']],
    ['', [''], ['a']],
  ]
  for (const [pattern, yes, no] of matches) {
    for (const text of yes) assert.ok(glob(pattern)(text), `${pattern} ${text}`)
    for (const text of no) assert.ok(!glob(pattern)(text), `${pattern} ${text}`)
  }
})

test('a glob agrees with the equivalent regular expression', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 8 })
  fc.assert(
    fc.property(text, text, (pattern, word) => {
      assert.equal(glob(pattern)(word), new RegExp(`^${pattern.replaceAll('*', '.*')}$`, 's').test(word))
    }),
    { numRuns: 2000 },
  )
})

test('sessions and their SPIFFE IDs map one to one', () => {
  const name = { trustDomain: 'plat.local', namespace: 'default', agent: 'assistant', session: 'run-1' }
  const id = 'spiffe://plat.local/ns/default/agent/assistant/session/run-1'
  assert.equal(sessionSpiffeId(name), id)
  assert.deepEqual(parseSessionSpiffeId(id), name)
  for (const bad of [
    `${id}/`,
    `${id}/x`,
    id.replace('/ns/', '/NS/'),
    id.replace('plat.local', 'Plat.local'),
    `${id}?q`,
  ])
    assert.equal(parseSessionSpiffeId(bad), null, bad)
  assert.equal(parseSessionSpiffeId(id.replace('run-1', '..')), null)
  assert.equal(parseSessionSpiffeId(id.replace('run-1', 'r%61')), null)
})

test('a part that would change the structure of a SPIFFE ID is refused by name', () => {
  const name = { trustDomain: 'plat.local', namespace: 'a', agent: 'b', session: 'c' }
  for (const bad of ['', '.', '..', 'a/b', 'a b', 'é', 'a%2f', 'a\n']) {
    assert.ok(!isSpiffeSegment(bad))
    assert.throws(() => sessionSpiffeId({ ...name, agent: bad }), /agent/)
  }
  for (const bad of ['', 'Plat', 'a/b', 'a:1', 'x'.repeat(256)]) assert.ok(!isTrustDomain(bad))
  assert.throws(() => sessionSpiffeId({ ...name, trustDomain: 'A' }), /trustDomain/)
  assert.throws(() => sessionSpiffeId({ ...name, session: 'x'.repeat(2048) }), /2048/)
})

test('times are RFC 3339 in UTC', () => {
  assert.equal(rfc3339Micros(0), '1970-01-01T00:00:00.000000Z')
  assert.equal(rfc3339Micros(Date.UTC(2026, 0, 1) + 1.25), '2026-01-01T00:00:00.001250Z')
  assert.equal(rfc3339(Date.UTC(2026, 0, 1) + 999), '2026-01-01T00:00:00Z')
})

test('a misspelt word finds the intended one, an unknown one finds none', () => {
  const keys = ['listen', 'adminListen', 'policyFile', 'auditPath']
  assert.equal(closest('lsten', keys), 'listen')
  assert.equal(closest('policyfile', keys), 'policyFile')
  assert.equal(closest('AuditPaht', keys), 'auditPath')
  assert.equal(closest('tokenVault', keys), null)
  assert.equal(closest('mode', ['node', 'code']), 'node')
  assert.equal(closest('', keys), null)
  assert.equal(closest('x'.repeat(65), ['x'.repeat(65)]), null)
})

test('the build names the runtime and the platform', () => {
  const build = buildInfo('gateway')
  assert.equal(build.component, 'gateway')
  assert.match(build.version, /^\d+\.\d+\.\d+$/)
  assert.equal(build.goVersion, `node${process.versions.node}`)
  assert.equal(build.platform, `${process.platform}/${process.arch}`)
})

test('a thrown value gives its message, aggregated errors the first one', () => {
  assert.equal(reasonOf(new Error('why')), 'why')
  assert.equal(reasonOf('why'), 'why')
  assert.equal(reasonOf(new AggregateError([new Error('first'), new Error('second')])), 'first')
  assert.equal(reasonOf(new AggregateError([new Error('first')], 'both')), 'both')
})

test('the microsecond format does not depend on earlier values', () => {
  const near = fc.tuple(fc.integer({ min: -2, max: 2 }), fc.nat(1999), fc.nat(7)).map(([s, ms, eighth]) => {
    return Date.UTC(2026, 0, 1) + s * 1000 + ms + eighth / 8
  })
  const far = fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59Z'), noInvalidDate: true }).map(Number)
  fc.assert(
    fc.property(fc.array(fc.oneof(near, far), { maxLength: 20 }), (times) => {
      for (const ms of times) {
        const whole = Math.floor(ms)
        const micros = String((ms - whole) * 1000).padStart(3, '0')
        assert.equal(rfc3339Micros(ms), new Date(whole).toISOString().replace('Z', `${micros}Z`))
      }
    }),
  )
  assert.throws(() => rfc3339Micros(Number.NaN), RangeError)
  assert.throws(() => rfc3339Micros(9e15), RangeError)
  assert.throws(() => rfc3339Micros(9e15), RangeError)
})
