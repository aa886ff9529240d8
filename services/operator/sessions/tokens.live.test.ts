import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { until } from '@plat/testkit/until'
import { SANDBOXES, SECRETS, setUpCluster } from './testing/cluster.ts'

let identity: TestIdentity

before(async () => {
  identity = await startTestIdentity()
})

after(async () => {
  await identity?.stop()
})

test('a new leader keeps the tokens that are still valid, and mints those that are not', async (t) => {
  const { server, start, restart, session, says, reaches, statusOf } = await setUpCluster(t, { identity })
  await start()
  const names = ['kept', 'due', 'foreign', 'other']
  for (const name of names) {
    session({}, name)
    await until(() => server.get(`${SANDBOXES}/${name}`) !== undefined, 'the Sandbox')
    says(name, 'Ready')
    await reaches('Running', name)
  }
  const before = new Map(names.map((name) => [name, statusOf(name).jti]))
  const secretOf = (name: string) => `${SECRETS}/plat-session-${name}`
  const change = (name: string, metadata: object, annotations: object = {}) => {
    const secret = Object(server.get(secretOf(name)))
    const merged = { ...secret.metadata.annotations, ...annotations }
    server.put(secretOf(name), { ...secret, metadata: { ...secret.metadata, ...metadata, annotations: merged } })
  }
  change('due', {}, { 'plat.dev/refresh-at': '2026-01-01T00:00:00Z' })
  change('foreign', { ownerReferences: [] })
  change('other', {}, { 'plat.dev/jti': 'another' })
  server.seen.length = 0
  await restart()
  for (const name of ['due', 'foreign', 'other'])
    await until(() => statusOf(name).jti !== before.get(name), `${name} has another token`)
  await until(() => server.seen.includes(`GET ${secretOf('kept')}`), 'the kept token is read')
  assert.equal(statusOf('kept').jti, before.get('kept'))
  assert.deepEqual(
    server.seen.filter((seen) => seen === `PATCH ${secretOf('kept')}` || seen.endsWith('/kept/status')),
    [],
  )
})
