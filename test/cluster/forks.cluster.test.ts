import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { JsonObject } from '@plat/core'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { until } from '@plat/testkit/until'
import { parse } from 'yaml'
import { type Binaries, buildBinaries } from './binaries.ts'
import { sandboxDefinitions } from './definitions.ts'
import { type ClusterOperator, grantSandboxes, operatorAccount, startClusterOperator } from './operator.ts'
import { type Cluster, startCluster } from './plat.ts'

const PLAT = '/apis/plat.dev/v1alpha1'
const TEAM = `${PLAT}/namespaces/team`
const SANDBOXES = '/apis/agents.x-k8s.io/v1beta1/namespaces/team/sandboxes'
const SNAPSHOTS = '/apis/snapshot.storage.k8s.io/v1/namespaces/team/volumesnapshots'
const CLAIMS = '/api/v1/namespaces/team/persistentvolumeclaims'

let cluster: Cluster
let broker: TestIdentity
let operator: ClusterOperator

async function must(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', where: string, body?: object): Promise<JsonObject> {
  const answer = await cluster.server.ask(method, where, body)
  assert.ok(answer.status < 300, `${method} ${where}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

async function isThere(where: string): Promise<boolean> {
  return (await cluster.server.ask('GET', where)).status === 200
}

/** Sandboxes of agent-sandbox, and snapshots of external-snapshotter. */
async function define({ crds, snapshotCrds }: Binaries): Promise<void> {
  const snapshots = ['volumesnapshots', 'volumesnapshotclasses', 'volumesnapshotcontents'].map((plural) =>
    parse(readFileSync(path.join(snapshotCrds, `snapshot.storage.k8s.io_${plural}.yaml`), 'utf8')),
  )
  for (const definition of [...sandboxDefinitions(crds), ...snapshots])
    await must('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  for (const where of [SANDBOXES, SNAPSHOTS]) await until(() => isThere(where), `${where} is served`)
}

before(async () => {
  const binaries = buildBinaries(() => {})
  assert.ok(typeof binaries !== 'string', String(binaries))
  cluster = await startCluster()
  await define(binaries)
  await must('POST', '/api/v1/namespaces', { metadata: { name: 'team' } })
  const account = await operatorAccount(cluster.server)
  await grantSandboxes(cluster.server)
  broker = await startTestIdentity()
  process.env.PLAT_BROKER_TOKEN = broker.brokerToken
  operator = await startClusterOperator(account, ['-identity-url', broker.url])
})

after(async () => {
  await operator?.kill()
  await broker?.stop()
  await cluster?.stop()
})

async function put(kind: string, plural: string, name: string, spec: object): Promise<void> {
  const where = kind === 'TrustTier' ? `${PLAT}/${plural}` : `${TEAM}/${plural}`
  await must('POST', where, { apiVersion: 'plat.dev/v1alpha1', kind, metadata: { name }, spec })
}

const session = (name: string, spec: object = {}) =>
  put('AgentSession', 'agentsessions', name, { agentRef: 'a', user: 'ada@example.com', ...spec })

async function readyOf(name: string): Promise<{ phase?: string; reason?: string; message?: string }> {
  const { phase, conditions = [] } = Object((await must('GET', `${TEAM}/agentsessions/${name}`)).status)
  const { reason, message } = Object(Object.values<JsonObject>(conditions).find(({ type }) => type === 'Ready'))
  return { phase, reason, message }
}

const waitsFor = (name: string, reason: string) =>
  until(async () => (await readyOf(name)).reason === reason, `${name} has the reason ${reason}`)

/** As agent-sandbox's controller does: makes the claims of a Sandbox, and its pod is ready. */
async function controlSandbox(name: string): Promise<void> {
  await until(() => isThere(`${SANDBOXES}/${name}`), `the Sandbox ${name}`)
  const { metadata, spec } = await must('GET', `${SANDBOXES}/${name}`)
  const owner = { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', name, uid: Object(metadata).uid }
  for (const template of Object(spec).volumeClaimTemplates) {
    const claim = { name: `${template.metadata.name}-${name}`, ownerReferences: [{ ...owner, controller: true }] }
    await must('POST', `${CLAIMS}?fieldValidation=Strict`, { metadata: claim, spec: template.spec })
  }
  const condition = { type: 'Ready', status: 'True', reason: 'DependenciesReady', message: '' }
  const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }]
  await must('PATCH', `${SANDBOXES}/${name}/status`, { status: { conditions } })
  await until(async () => (await readyOf(name)).phase === 'Running', `${name} runs`)
}

/** As the snapshot controller does. */
const controlSnapshot = (name: string, status: object) =>
  must('PATCH', `${SNAPSHOTS}/plat-fork-${name}/status`, { status })

test('on a real cluster a fork begins with a snapshot of its parent’s volume once it is ready, and leaves none', async () => {
  // Shows D2.agent.workspace.volumeSnapshotClassName.
  await put('TrustTier', 'trusttiers', 'own', {})
  const workspace = { size: '1Gi', storageClassName: 'fast', volumeSnapshotClassName: 'fast-snapshots' }
  await put('Agent', 'agents', 'a', { image: 'i', tier: 'own', workspace })
  await session('trunk')
  await controlSandbox('trunk')
  await session('branch', { fork: { parent: 'trunk', root: 'trunk' } })
  await until(() => isThere(`${SNAPSHOTS}/plat-fork-branch`), 'the snapshot')
  const { metadata, spec } = await must('GET', `${SNAPSHOTS}/plat-fork-branch`)
  assert.deepEqual(spec, {
    source: { persistentVolumeClaimName: 'workspace-trunk' },
    volumeSnapshotClassName: 'fast-snapshots',
  })
  const { uid } = Object((await must('GET', `${TEAM}/agentsessions/branch`)).metadata)
  const [owner] = Object(metadata).ownerReferences
  assert.deepEqual([owner.kind, owner.name, owner.uid, owner.controller], ['AgentSession', 'branch', uid, true])
  await waitsFor('branch', 'SnapshotNotReady')
  await controlSnapshot('branch', { readyToUse: false, error: { message: 'the pool is full' } })
  await waitsFor('branch', 'SnapshotFailed')
  assert.match((await readyOf('branch')).message ?? '', /: the pool is full$/)
  assert.equal(await isThere(`${SANDBOXES}/branch`), false)
  // The parent may be gone by the time that the copy is ready.
  await must('DELETE', `${TEAM}/agentsessions/trunk`)
  const taken = { creationTime: '2026-01-01T00:00:00Z', restoreSize: '1536Mi', boundVolumeSnapshotContentName: 'c' }
  await controlSnapshot('branch', { readyToUse: true, ...taken, error: null })
  await controlSandbox('branch')
  const claim = Object((await must('GET', `${CLAIMS}/workspace-branch`)).spec)
  const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'plat-fork-branch' }
  assert.deepEqual([claim.dataSource, claim.storageClassName], [dataSource, 'fast'])
  assert.equal(claim.resources.requests.storage, '1536Mi')
  await until(async () => !(await isThere(`${SNAPSHOTS}/plat-fork-branch`)), 'the snapshot is deleted')
})

test('on a real cluster a fork has the labels that its parent had after its workspace was copied', async () => {
  await session('root')
  await controlSandbox('root')
  await session('heir', { fork: { parent: 'root', root: 'root', inheritTaints: true } })
  await until(() => isThere(`${SNAPSHOTS}/plat-fork-heir`), 'the snapshot')
  const report = (at: string, labels: readonly string[]) => {
    const annotations = { 'plat.dev/taints': JSON.stringify({ at, agent: 'a', labels }) }
    return must('PATCH', `${TEAM}/agentsessions/root`, { metadata: { annotations } })
  }
  await report('2099-01-01T00:00:00Z', [])
  await controlSnapshot('heir', { readyToUse: true, creationTime: '2099-01-01T00:00:00Z' })
  await waitsFor('heir', 'TaintsUnknown')
  await report('2099-01-01T00:01:00Z', ['web'])
  await controlSandbox('heir')
  const { inheritedTaints, forkedFrom } = Object((await must('GET', `${TEAM}/agentsessions/heir`)).status)
  assert.deepEqual([inheritedTaints, forkedFrom], [['web'], ['a/root']])
})

test('on a real cluster a cancelled fork leaves no snapshot, and another user gets no copy', async () => {
  await session('left', { fork: { parent: 'root', root: 'root' } })
  await until(() => isThere(`${SNAPSHOTS}/plat-fork-left`), 'the snapshot')
  await must('PATCH', `${TEAM}/agentsessions/left`, { spec: { cancel: true } })
  await until(async () => !(await isThere(`${SNAPSHOTS}/plat-fork-left`)), 'the snapshot is deleted')
  await session('thief', { user: 'bob@example.com', fork: { parent: 'root', root: 'root' } })
  await waitsFor('thief', 'ParentDiffers')
  assert.equal(await isThere(`${SNAPSHOTS}/plat-fork-thief`), false)
  const text = await (await fetch(`${operator.url}/metrics`)).text()
  assert.doesNotMatch(text, /plat_reconcile_errors_total\{[^}]*reason="Forbidden"/)
})
