import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { KubernetesApiError } from '@plat/kubernetes'
import { silentLog } from '@plat/process'
import { Elector } from './elector.ts'

interface Lease {
  readonly metadata: { readonly resourceVersion: string }
  readonly spec: Readonly<Record<string, unknown>>
}

/** The one Lease of a cluster, as several electors see it. */
class Leases {
  lease: Lease | null = null
  version = 0
  down = false
  /** Runs between what an elector reads and what it writes. */
  race: () => void = () => {}

  write(spec: Lease['spec']): Lease {
    this.lease = { metadata: { resourceVersion: String(++this.version) }, spec }
    return this.lease
  }

  readonly ask = async ({ method, body }: { readonly method: string; readonly body?: object }) => {
    if (this.down) throw new KubernetesApiError('down', 0)
    if (method === 'GET') {
      if (this.lease === null) throw new KubernetesApiError('none', 404)
      return { status: 200, body: { ...this.lease } }
    }
    this.race()
    const { metadata, spec }: Lease = Object(body)
    const fresh = method === 'POST' ? this.lease === null : metadata.resourceVersion === String(this.version)
    if (!fresh) throw new KubernetesApiError('changed', 409)
    return { status: 200, body: { ...this.write(spec) } }
  }
}

function setUp() {
  const clock = new TestClock()
  const leases = new Leases()
  /** The current leader, and all replicas that ever led. */
  const working = new Set<string>()
  const began: string[] = []
  const elect = (identity: string) => {
    const stop = new AbortController()
    const common = { namespace: 'n', name: 'l', leaseMs: 15_000, renewMs: 10_000, retryMs: 2_000 }
    const elector = new Elector({ api: leases, identity, ...common, clock, log: silentLog })
    const over = elector.run(async (signal) => {
      began.push(identity)
      working.add(identity)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      working.delete(identity)
    }, stop.signal)
    const end = async () => {
      stop.abort()
      await over
    }
    return { elector, end }
  }
  return { clock, leases, working, began, elect }
}

test('of two electors one works, however long it goes on, and the other once it has given the Lease back', async () => {
  const { clock, leases, working, began, elect } = setUp()
  const a = elect('a')
  await clock.advance(0)
  const b = elect('b')
  for (let turn = 0; turn < 60; turn++) {
    await clock.advance(1000)
    assert.deepEqual([...working], ['a'])
  }
  const { spec } = leases.lease ?? assert.fail()
  assert.deepEqual([spec.holderIdentity, spec.leaseDurationSeconds, spec.leaseTransitions], ['a', 15, 0])
  // An API server takes nothing but six digits.
  assert.match(String(spec.renewTime), /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$/)
  await a.end()
  assert.equal(leases.lease?.spec.holderIdentity, '')
  await clock.advance(2000)
  assert.deepEqual([[...working], began], [['b'], ['a', 'b']])
  assert.equal(leases.lease?.spec.leaseTransitions, 1)
  await b.end()
})

test('a Lease is acquired once it was observed unchanged for its duration, regardless of its timestamps', async () => {
  const { clock, leases, working, elect } = setUp()
  const renewTime = '2199-01-01T00:00:00.000000Z'
  leases.write({ holderIdentity: 'gone', leaseDurationSeconds: 15, renewTime, leaseTransitions: 4 })
  const b = elect('b')
  await clock.advance(0)
  await clock.advance(14_000)
  assert.equal(working.size, 0)
  await clock.advance(2_000)
  assert.deepEqual([...working], ['b'])
  assert.equal(leases.lease?.spec.leaseTransitions, 5)
  await b.end()
})

test('a leader that cannot renew has stopped before another may begin', async () => {
  const { clock, leases, working, began, elect } = setUp()
  const a = elect('a')
  await clock.advance(0)
  await clock.advance(4_000)
  assert.ok(a.elector.leads)
  leases.down = true
  await clock.advance(10_000)
  assert.deepEqual([...working], [])
  assert.equal(a.elector.leads, false)
  leases.down = false
  await clock.advance(2_000)
  assert.deepEqual(began, ['a', 'a'])
  await a.end()
})

test('a leader whose Lease another has taken stops at once, and who loses the race for one does not begin', async () => {
  const { clock, leases, working, began, elect } = setUp()
  const a = elect('a')
  await clock.advance(0)
  leases.write({ holderIdentity: 'b', leaseDurationSeconds: 15, leaseTransitions: 1 })
  await clock.advance(2_000)
  assert.deepEqual([...working], [])
  leases.write({ holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 1 })
  leases.race = () => {
    leases.race = () => {}
    leases.write({ holderIdentity: 'c', leaseDurationSeconds: 15, leaseTransitions: 2 })
  }
  await clock.advance(2_000)
  assert.deepEqual([began, leases.lease?.spec.holderIdentity], [['a'], 'c'])
  await a.end()
  assert.equal(leases.lease?.spec.holderIdentity, 'c')
})
