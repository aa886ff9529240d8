import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { until } from '@plat/testkit/until'
import { SANDBOXES, setUpCluster } from './testing/cluster.ts'

const POLICIES = '/apis/networking.k8s.io/v1/namespaces/team/networkpolicies'
const POLICY = `${POLICIES}/plat-view-s`
const FLAGS = ['-browser-image=registry.example/browser:1', '-gateway-labels=app=gateway,tier=data']
const VIEWED = { profile: 'browser', browser: { liveView: true } }

let identity: TestIdentity

before(async () => {
  identity = await startTestIdentity()
})

after(async () => {
  await identity?.stop()
})

async function setUp(t: TestContext, { agent = VIEWED, flags = FLAGS }: { agent?: object; flags?: string[] } = {}) {
  const cluster = await setUpCluster(t, { identity, agent, flags })
  await cluster.start()
  return { ...cluster, isMade: () => until(() => cluster.server.get(`${SANDBOXES}/s`) !== undefined, 'the Sandbox') }
}

test('only the gateway reaches a pod that shows its browser, before the pod is there and until the session ends', async (t) => {
  const { server, session, change, says, reaches, at, isMade } = await setUp(t)
  const order: string[] = []
  const put = server.put.bind(server)
  server.put = (path, object) => {
    if (path === POLICY || path === `${SANDBOXES}/s`) order.push(path)
    put(path, object)
  }
  session()
  await isMade()
  assert.deepEqual(order.slice(0, 2), [POLICY, `${SANDBOXES}/s`])
  const { metadata, spec } = at(POLICY)
  const pods = { matchLabels: { 'plat.dev/session': 's' } }
  assert.deepEqual(spec, {
    podSelector: pods,
    policyTypes: ['Ingress'],
    ingress: [
      {
        from: [
          {
            namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'plat-system' } },
            podSelector: { matchLabels: { app: 'gateway', tier: 'data' } },
          },
        ],
        ports: [{ protocol: 'TCP', port: 6080 }],
      },
    ],
  })
  const { podTemplate } = Object(at(`${SANDBOXES}/s`).spec)
  assert.equal(podTemplate.metadata.labels['plat.dev/session'], pods.matchLabels['plat.dev/session'])
  const [owner] = Object(metadata.ownerReferences)
  assert.deepEqual([owner.kind, owner.name, owner.controller], ['AgentSession', 's', true])
  says('s', 'Ready')
  await reaches('Running')
  change({ cancel: true })
  await reaches('Cancelled')
  await until(() => server.get(POLICY) === undefined, 'the NetworkPolicy is deleted')
})

test('a NetworkPolicy that others change or delete is repaired', async (t) => {
  const { server, session, at, says, reaches, isMade } = await setUp(t)
  session()
  await isMade()
  says('s', 'Ready')
  await reaches('Running')
  const { metadata, spec } = at(POLICY)
  server.put(POLICY, { metadata, spec: { ...spec, ingress: [{}] } })
  await until(() => Object(at(POLICY).spec).ingress[0].from !== undefined, 'the NetworkPolicy is repaired')
  server.remove(POLICY)
  await until(() => server.get(POLICY) !== undefined, 'the NetworkPolicy is there again')
  assert.deepEqual(at(POLICY).spec, spec)
})

test('while the gateway has no labels no session has a live view', async (t) => {
  const { server, session, condition } = await setUp(t, { flags: FLAGS.slice(0, 1) })
  session()
  await until(() => condition('Ready')?.reason === 'ProfileNotServed', 'the session waits')
  assert.match(condition('Ready')?.message ?? '', /^browser\.liveView: set -gateway-labels/)
  assert.equal(server.get(`${SANDBOXES}/s`), undefined)
})

test('the pods of other sessions keep the network that the cluster gives them', async (t) => {
  const { server, session, isMade } = await setUp(t, { agent: { profile: 'browser' } })
  session()
  await isMade()
  assert.equal(server.get(POLICY), undefined)
})
