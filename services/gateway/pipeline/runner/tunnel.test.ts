import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { setUp } from './testing/fixture.ts'

const MINUTE_MS = 60_000

/** One end of a connection whose other end is the test: what is pushed comes in, what is written is swallowed. */
const end = () => new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })

/** A tunnel that stands. */
function tunnelled() {
  const [caller, upstream] = [end(), end()]
  const reply = { kind: 'tunnel', head: { status: 200, headers: {} }, attempts: [], socket: upstream } as const
  const fixture = setUp({ operation: 'tunnel', caller, plane: { forward: async () => reply } })
  const standing = until(() => fixture.wire.length === 1, 'the tunnel')
  const outcome = () => fixture.records.find(({ kind }) => kind === 'outcome')
  return { ...fixture, caller, upstream, standing, outcome }
}

test('a tunnel in which nothing moves is cut after ten minutes, and not before', async () => {
  const { clock, caller, upstream, standing, done, outcome } = tunnelled()
  await standing
  await clock.advance(9 * MINUTE_MS)
  upstream.push('still here')
  await until(() => upstream.readableLength === 0, 'the bytes')
  await clock.advance(9 * MINUTE_MS)
  assert.equal(caller.destroyed, false)
  await clock.advance(2 * MINUTE_MS)
  await done
  assert.deepEqual([caller.destroyed, upstream.destroyed], [true, true])
  const told = outcome()
  assert.deepEqual([told?.result, told?.code, told?.bytesDown], ['cut', 'upstream_timeout', 10])
})

test('no tunnel lives for more than eight hours, however busy it is', async () => {
  const { clock, caller, upstream, standing, done, outcome } = tunnelled()
  await standing
  for (let minutes = 0; minutes < 8 * 60 - 5; minutes += 5) {
    caller.push('x')
    await until(() => caller.readableLength === 0, 'the bytes')
    await clock.advance(5 * MINUTE_MS)
  }
  assert.equal(upstream.destroyed, false)
  caller.push('x')
  await clock.advance(6 * MINUTE_MS)
  await done
  assert.equal(upstream.destroyed, true)
  assert.equal(outcome()?.code, 'upstream_timeout')
})

test('a side that has ended and does not take the rest is cut with the other after a while', async () => {
  const { clock, caller, upstream, standing, done, outcome } = tunnelled()
  await standing
  // What the upstream still has to take never leaves.
  upstream._write = () => {}
  caller.push('the rest')
  caller.push(null)
  upstream.push(null)
  await until(() => caller.readableEnded && upstream.readableEnded, 'both ends')
  await clock.advance(9 * MINUTE_MS)
  assert.equal(outcome(), undefined)
  await clock.advance(2 * MINUTE_MS)
  await done
  assert.deepEqual([outcome()?.result, upstream.destroyed], ['cut', true])
})

test('a tunnel whose caller was gone before it stood lets the upstream go', async () => {
  const caller = end()
  const upstream = end()
  caller.destroy()
  const reply = { kind: 'tunnel', head: { status: 200, headers: {} }, attempts: [], socket: upstream } as const
  const { done, records } = setUp({ operation: 'tunnel', caller, plane: { forward: async () => reply } })
  await done
  assert.equal(upstream.destroyed, true)
  assert.equal(records.find(({ kind }) => kind === 'outcome')?.result, 'cancelled')
})
