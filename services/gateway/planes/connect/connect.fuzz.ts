import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { systemClock } from '@plat/core'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { isDenial, type RequestContext, Snapshots } from '../../call/index.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { execBody, sessionIn } from '../exec/request.ts'
import { createConnectPlane, placeOf } from './index.ts'

const plane = createConnectPlane({
  dialer: { connect: () => Promise.reject(new Error('no connections')) },
  clock: systemClock,
})
const { signal } = new AbortController()

function arrivalAt(path: string): RequestContext {
  const wire = { method: 'CONNECT', path, query: '', headers: {}, body: Readable.from([]), remote: '' }
  return { id: 'c', wire, signal, receivedAt: 0, snapshot: new Snapshots().current, retain: () => true }
}

const authority = near([
  'Example.COM.:443',
  '[::1]:80',
  '0x7f.1:8443',
  'b%C3%BCcher.example:65535',
  'user:pass@host:80/path?query#hash',
  'xn--a:1',
  '%00:80',
])

/** A target is refused, or the host that policies evaluate is the one that is dialled, in a canonical form. */
const places = fc.property(authority, (path) => {
  const arrival = arrivalAt(path)
  const read = plane.read(arrival, testIdentity)
  assert.ok(!(read instanceof Promise))
  if (isDenial(read)) return assert.equal(read.code, 'invalid_request')
  const { name } = read
  const place = placeOf(arrival) ?? assert.fail('no place')
  assert.equal(place.hostname, name)
  assert.equal(new URL(`https://${name}/`).hostname, name)
  assert.equal(new URL(`tcp://${name}:1`).hostname, name)
  assert.ok(name !== null && name !== '' && !name.endsWith('.'))
  assert.deepEqual([place.pathname, place.search, place.hash, place.username], ['/', '', '', ''])
})

/** A body is refused with a reason, or has a permitted timeout. */
const bodies = fc.property(near(['{"code":"x","timeoutSeconds":5}', '{"timeoutSeconds":1e2,"a":[]}', '[]']), (text) => {
  const body = execBody(Buffer.from(text), 20)
  if (typeof body === 'string') return assert.ok(body.length > 0)
  const { value } = body
  assert.ok(typeof value === 'object' && value !== null)
  const { timeoutSeconds: timeout = 1 }: { timeoutSeconds?: unknown } = value
  assert.ok(Number.isInteger(timeout) && Number(timeout) >= 1 && Number(timeout) <= 20)
})

const sessions = fc.property(
  near(['/v1/sessions/s1/exec', '/v1/sessions/a%2Fb%2Fc/exec', '/v1/sessions/%zz/exec']),
  (path) => {
    const session = sessionIn(path)
    assert.ok(session === null || path.startsWith('/v1/sessions/'))
  },
)

/** Every CONNECT target and every request to run code is refused or read in one way. */
export const target = fuzzTarget('gateway: ways out of and into sandboxes', { places, bodies, sessions })
