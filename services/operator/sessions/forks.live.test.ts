import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { until } from '@plat/testkit/until'
import { SANDBOXES, SECRETS, setUpCluster } from './testing/cluster.ts'

const SNAPSHOT = '/apis/snapshot.storage.k8s.io/v1/namespaces/team/volumesnapshots/plat-fork-s'

let identity: TestIdentity

before(async () => {
  identity = await startTestIdentity()
})

after(async () => {
  await identity?.stop()
})

/** A parent `p` that runs with a workspace, of an Agent whose forks begin with it. */
async function setUpParent(t: TestContext) {
  const workspace = { size: '1Gi', volumeSnapshotClassName: 'fast' }
  const cluster = await setUpCluster(t, { identity, agent: { workspace } })
  const { server, session, says, reaches } = cluster
  await cluster.start()
  session({}, 'p')
  await until(() => server.get(`${SANDBOXES}/p`) !== undefined, 'the parent’s Sandbox')
  says('p', 'Ready')
  await reaches('Running', 'p')
  return {
    ...cluster,
    /** As the snapshot controller does. */
    snapshotted: (status: object) => {
      const { metadata, spec } = cluster.at(SNAPSHOT)
      server.put(SNAPSHOT, { metadata, spec, status })
    },
  }
}

test('a fork waits for the snapshot of its parent’s volume, says so, and its volume is made of it', async (t) => {
  const { server, session, at, condition, snapshotted, reaches, says, change } = await setUpParent(t)
  session({ fork: { parent: 'p' } })
  await until(() => server.get(SNAPSHOT) !== undefined, 'the snapshot')
  const { metadata, spec } = at(SNAPSHOT)
  assert.deepEqual(spec, { volumeSnapshotClassName: 'fast', source: { persistentVolumeClaimName: 'workspace-p' } })
  assert.match(JSON.stringify(metadata.ownerReferences), /"kind":"AgentSession","name":"s"/)
  await until(() => condition('Ready')?.reason === 'SnapshotNotReady', 'the fork waits')
  snapshotted({ readyToUse: false, error: { message: 'the pool is full' } })
  await until(() => condition('Ready')?.reason === 'SnapshotFailed', 'the failure is reported')
  assert.match(condition('Ready')?.message ?? '', /the pool is full$/)
  assert.equal(server.get(`${SANDBOXES}/s`), undefined)
  change({ cancel: true }, {}, 'p')
  await reaches('Cancelled', 'p')
  snapshotted({ readyToUse: true, creationTime: '2026-01-01T00:00:00Z', restoreSize: '2Gi' })
  await until(() => server.get(`${SANDBOXES}/s`) !== undefined, 'the Sandbox')
  const claims = JSON.stringify(at(`${SANDBOXES}/s`).spec.volumeClaimTemplates)
  assert.match(
    claims,
    /"dataSource":\{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"plat-fork-s"\}/,
  )
  assert.match(claims, /"storage":"2Gi"/)
  assert.notEqual(server.get(SNAPSHOT), undefined)
  says('s', 'Ready')
  await reaches('Running')
  await until(() => server.get(SNAPSHOT) === undefined, 'the snapshot is deleted')
})

test('a fork inherits labels that its parent had when the workspace was copied', async (t) => {
  const { server, session, condition, snapshotted, change } = await setUpParent(t)
  session({ fork: { parent: 'p', inheritTaints: true } })
  await until(() => server.get(SNAPSHOT) !== undefined, 'the snapshot')
  const report = (at: number, labels: readonly string[]) => {
    const text = JSON.stringify({ at: new Date(at).toISOString(), agent: 'a', labels })
    change({}, { 'plat.dev/taints': text }, 'p')
  }
  const copiedAt = systemClock.now() + 3_600_000
  report(copiedAt - 60_000, [])
  snapshotted({ readyToUse: true, creationTime: new Date(copiedAt).toISOString() })
  await until(() => condition('Ready')?.reason === 'TaintsUnknown', 'the report is older than the files')
  report(copiedAt + 60_000, ['web'])
  // Any change of the fork has it looked at before its own time.
  change({ ttl: '1h' })
  await until(() => server.get(`${SECRETS}/plat-session-s`) !== undefined, 'the token')
  const { data } = Object(server.get(`${SECRETS}/plat-session-s`))
  const [, claims = ''] = Buffer.from(data.token, 'base64').toString().split('.')
  assert.equal(JSON.parse(Buffer.from(claims, 'base64url').toString()).plat_inherited_taints, 'web')
})

test('a fork whose snapshot is gone gets no empty workspace, and one that is cancelled leaves no snapshot', async (t) => {
  const { server, session, condition, snapshotted, reaches, change } = await setUpParent(t)
  server.faults.push({ request: /^POST .*sandboxes$/, status: 403, reason: 'Forbidden' })
  session({ fork: { parent: 'p' } })
  await until(() => server.get(SNAPSHOT) !== undefined, 'the snapshot')
  snapshotted({ readyToUse: true, creationTime: '2026-01-01T00:00:00Z' })
  await until(() => condition('Ready')?.reason === 'NotPrepared', 'the Sandbox is refused')
  server.remove(SNAPSHOT)
  const isGone = () => /VolumeSnapshot that the workspace begins with is gone/.test(condition('Ready')?.message ?? '')
  await until(isGone, 'the loss is reported')
  server.faults.length = 0
  assert.equal(server.get(`${SANDBOXES}/s`), undefined)
  change({ cancel: true })
  await reaches('Cancelled')
  const other = SNAPSHOT.replace(/s$/, 'other')
  session({ fork: { parent: 'p' } }, 'other')
  await until(() => server.get(other) !== undefined, 'another snapshot')
  change({ cancel: true }, {}, 'other')
  await reaches('Cancelled', 'other')
  assert.equal(server.get(other), undefined)
})

test('without the right to list VolumeSnapshots only such forks wait', async (t) => {
  const workspace = { size: '1Gi', volumeSnapshotClassName: 'fast' }
  const { server, start, session, condition } = await setUpCluster(t, { identity, agent: { workspace } })
  server.faults.push({ request: /^GET .*volumesnapshots$/, status: 403, reason: 'Forbidden' })
  await start()
  session({}, 'p')
  await until(() => server.get(`${SANDBOXES}/p`) !== undefined, 'a session begins')
  session({ fork: { parent: 'p' } })
  await until(() => condition('Ready')?.reason === 'SnapshotsNotServed', 'the fork waits')
})
