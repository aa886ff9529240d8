import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { setUp } from './testing/fixture.ts'

const MINUTE_MS = 60_000

/** A connection whose other end is the test: pushed data is read, written data is discarded. */
const end = () => new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })

/** An open tunnel. */
function tunnelled() {
  const [caller, upstream] = [end(), end()]
  const reply = { kind: 'tunnel', head: { status: 200, headers: {} }, attempts: [], socket: upstream } as const
  const fixture = setUp({ operation: 'tunnel', caller, plane: { forward: async () => reply } })
  const standing = until(() => fixture.wire.length === 1, 'the tunnel')
  const outcome = () => fixture.records.find(({ kind }) => kind === 'outcome')
  return { ...fixture, caller, upstream, standing, outcome }
}

test('an idle tunnel is closed after ten minutes, and not before', async () => {
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
  const closing = outcome()
  assert.deepEqual([closing?.result, closing?.code, closing?.bytesDown], ['cut', 'upstream_timeout', 10])
})

test('a tunnel is closed after eight hours, however busy it is', async () => {
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

test('a tunnel with one side ended and unread data is closed after the idle timeout', async () => {
  const { clock, caller, upstream, standing, done, outcome } = tunnelled()
  await standing
  // The upstream never reads the rest of the data.
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

test('a tunnel whose caller left before it opened closes the upstream connection', async () => {
  const caller = end()
  const upstream = end()
  caller.destroy()
  const reply = { kind: 'tunnel', head: { status: 200, headers: {} }, attempts: [], socket: upstream } as const
  const { done, records } = setUp({ operation: 'tunnel', caller, plane: { forward: async () => reply } })
  await done
  assert.equal(upstream.destroyed, true)
  assert.equal(records.find(({ kind }) => kind === 'outcome')?.result, 'cancelled')
})
