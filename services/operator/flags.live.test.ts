import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { freePort } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { SANDBOXES, setUpCluster } from './sessions/testing/cluster.ts'

let identity: TestIdentity

before(async () => {
  identity = await startTestIdentity()
})

after(async () => {
  await identity?.stop()
})

test('the flags set the address of the metrics, how often nodes are counted, and the size of a workspace', async (t) => {
  // Shows D2.agent.codeInterpreter.workspaceSize.
  const port = await freePort()
  const address = `127.0.0.1:${port}`
  const { server, start, session, at } = await setUpCluster(t, {
    identity,
    agent: { profile: 'codeInterpreter' },
    flags: [
      `-metrics-bind-address=${address}`,
      '-node-count-interval=1s',
      '-workspace-size=3Gi',
      '-code-interpreter-image=example.com/code:1',
    ],
  })
  const controller = { apiVersion: 'agents.x-k8s.io/v1beta1', kind: 'Sandbox', name: 's', uid: 'u', controller: true }
  const pod = (node: string) => ({
    metadata: { labels: { 'agents.x-k8s.io/sandbox-name-hash': 'h' }, ownerReferences: [controller] },
    spec: { nodeName: node },
  })
  server.put('/api/v1/namespaces/team/pods/one', pod('a'))
  await start()
  const metrics = async () => (await fetch(`http://${address}/metrics`)).text()
  await until(async () => /^plat_billable_nodes\{period="current"\} 1$/m.test(await metrics()), 'a node is counted')
  server.put('/api/v1/namespaces/team/pods/two', pod('b'))
  // By default a minute passes until then.
  await until(
    async () => /^plat_billable_nodes\{period="current"\} 2$/m.test(await metrics()),
    'nodes are counted again',
  )
  session()
  await until(() => server.get(`${SANDBOXES}/s`) !== undefined, 'the Sandbox')
  assert.match(JSON.stringify(at(`${SANDBOXES}/s`).spec), /"emptyDir":\{"sizeLimit":"3Gi"\}/)
})
