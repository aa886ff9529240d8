import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock, systemIds, type TestClock } from '@plat/core'
import { deleting, ownedBy, phase, pooled, projectedToken, SANDBOX, SESSION, setMetadata } from './testing/cluster.ts'
import { setUp, until } from './testing/pods.ts'

test('a long-poll answers as soon as the pod is adopted and its session is prepared', async (t) => {
  // Shows D1.bootstrap.wait.
  const { server, ask } = await setUp(t, { clock: systemClock, ids: systemIds(systemClock) })
  server.change(SANDBOX, pooled)
  server.change(SESSION, phase('Pending'))
  const answer = ask('?wait=25')
  await until(() => server.watching() === 1)
  server.change(
    SANDBOX,
    setMetadata(ownedBy('extensions.agents.x-k8s.io/v1beta1', 'SandboxClaim', 'claim-1', 'uid-claim')),
  )
  await until(() => server.seen.some((line) => /agentsessions\?.*watch/.test(line)))
  server.change(SESSION, phase('Running'))
  assert.equal((await answer).status, 200)
  await until(() => server.watching() === 0)
})

test('a refusal ends a long-poll at once', async (t) => {
  const { server, refused } = await setUp(t, { clock: systemClock, ids: systemIds(systemClock) })
  server.change(SESSION, phase('Pending'))
  const answer = refused('?wait=25')
  await until(() => server.watching() === 1)
  server.change(SESSION, phase('Cancelled'))
  assert.equal(await answer, '410 session_gone')
})

test('a long-poll lasts at most 25 seconds, whatever was requested', async (t) => {
  // Shows D1.bootstrap.wait.cap. Shows D1.limit.bootstrapWait.
  const { server, refused, clock } = await setUp(t)
  server.change(SANDBOX, pooled)
  for (const wait of ['25', '26', '99999999999999999999']) {
    let outcome: string | null = null
    refused(`?wait=${wait}`).then((answer) => {
      outcome = answer
    })
    await pass(clock, 24_900, () => server.watching() === 1)
    assert.equal(outcome, null, wait)
    await clock.advance(101)
    await until(() => outcome !== null)
    assert.equal(outcome, '425 not_adopted')
    server.seen.length = 0
  }
})

/** Moves time on in steps of the broker's looks at the cluster, each after it waits again. */
async function pass(clock: TestClock, ms: number, waits: () => boolean): Promise<void> {
  for (let left = ms; left > 0; left -= 5000) {
    await until(waits)
    await clock.advance(Math.min(left, 5000))
  }
}

test('one pod has one long-poll, its newest', async (t) => {
  const { server, refused } = await setUp(t, { clock: systemClock, ids: systemIds(systemClock) })
  server.change(SANDBOX, pooled)
  const first = refused('?wait=25')
  await until(() => server.watching() === 1)
  const second = refused('?wait=25')
  assert.equal(await first, '425 not_adopted')
  await until(() => server.watching() === 1)
  assert.equal(await refused(), '425 not_adopted')
  assert.equal(server.watching(), 1)
  server.change(SANDBOX, deleting)
  assert.equal(await second, '410 session_gone')
})

test('a pod that goes away is not waited for', async (t) => {
  const { server, url } = await setUp(t)
  server.change(SANDBOX, pooled)
  const gone = new AbortController()
  const headers = { authorization: `Bearer ${projectedToken()}` }
  const requested = fetch(`${url}/v1/bootstrap?wait=25`, { method: 'POST', headers, signal: gone.signal })
  await until(() => server.watching() === 1)
  gone.abort()
  await assert.rejects(requested)
  await until(() => server.watching() === 0)
})

test('more pods at once than the flag allows get 503 and Retry-After, and the next one is served', async (t) => {
  const { server, ask } = await setUp(t, { bootstrapMaxConcurrent: 2 })
  const released = Promise.withResolvers<void>()
  server.held.push({ request: /tokenreviews/, until: released.promise })
  const held = [ask(), ask()]
  await until(() => server.seen.length === 2)
  const { status, headers, body } = await ask()
  assert.equal(`${status} ${body.error} ${headers.get('retry-after')}`, '503 temporarily_unavailable 1')
  released.resolve()
  assert.deepEqual(
    (await Promise.all(held)).map((answer) => answer.status),
    [200, 200],
  )
  assert.equal((await ask()).status, 200)
})

test('a draining broker answers every waiting pod', async (t) => {
  const { server, refused, broker } = await setUp(t, { clock: systemClock, ids: systemIds(systemClock) })
  server.change(SANDBOX, pooled)
  const waiting = refused('?wait=25')
  await until(() => server.watching() === 1)
  await broker.identity.drain()
  assert.equal(await waiting, '425 not_adopted')
})
