import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import {
  KubeConfig,
  type KubernetesObject,
  KubernetesObjectApi,
  makeInformer,
  PatchStrategy,
} from '@kubernetes/client-node'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { startUp, type Up } from './up.ts'

const API_VERSION = 'plat.dev/v1alpha1'

/** `plat up` on an empty folder of resources, with these keys of gateway.json. */
async function upIn(t: TestContext, keys: object = {}): Promise<Up> {
  const dir = tempFolder()
  await mkdir(join(dir, 'resources'))
  await writeFile(join(dir, 'gateway.json'), JSON.stringify(keys))
  const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  t.after(() => up.stop())
  return up
}

/** As kubectl and every client of Kubernetes reads it. */
function configOf({ home }: Up): KubeConfig {
  const config = new KubeConfig()
  config.loadFromFile(home.kubeconfig)
  return config
}

interface Server extends KubernetesObject {
  spec: { url: string; trust?: string }
}

function mcpServer(name: string): Server {
  const metadata = { name, namespace: 'default' }
  return { apiVersion: API_VERSION, kind: 'MCPServer', metadata, spec: { url: `http://${name}.example/mcp` } }
}

test('a Kubernetes client reads and writes resources with .plat/kubeconfig, and the gateway applies them', async (t) => {
  // Shows D3.state.resourceAPI.enabled, D3.state.resourceAPI.dir.
  const up = await upIn(t)
  assert.equal((await stat(up.home.kubeconfig)).mode & 0o777, 0o600)
  const config = configOf(up)
  const api = KubernetesObjectApi.makeApiClient(config)
  const seen: string[] = []
  const lists = () => api.list<Server>(API_VERSION, 'MCPServer', 'default')
  const informer = makeInformer(config, `/apis/${API_VERSION}/namespaces/default/mcpservers`, lists)
  for (const verb of ['add', 'update', 'delete'] as const) {
    informer.on(verb, ({ metadata }) => seen.push(`${verb} ${metadata?.name}`))
  }
  await informer.start()
  t.after(() => informer.stop())

  const created = await api.create<Server>(mcpServer('notes'))
  assert.equal(created.spec.trust, 'untrusted')
  const file = join(up.home.dir, 'resources/mcpservers/default/notes.yaml')
  assert.match(await readFile(file, 'utf8'), /url: http:\/\/notes\.example\/mcp\n/)
  const upstreams = () => readFile(join(up.home.rendered, 'upstreams.json'), 'utf8')
  await until(async () => (await upstreams()).includes('notes.example'), 'the new server to be rendered')
  await until(() => seen.includes('add notes'), 'the event of the new server')

  await assert.rejects(api.create(mcpServer('notes')), /already exists/)
  await assert.rejects(api.replace({ ...created, metadata: { ...created.metadata, resourceVersion: '1' } }), /modified/)
  const changed = { ...mcpServer('notes'), spec: { url: 'http://other.example/mcp' } }
  await api.patch(changed, undefined, undefined, 'test', undefined, PatchStrategy.MergePatch)
  await until(async () => (await upstreams()).includes('other.example'), 'the change to be rendered')
  await api.delete(mcpServer('notes'))
  await until(() => seen.includes('delete notes'), 'the event of the deleted server')
  assert.equal(existsSync(file), false)
})

test('an edit by hand reaches clients, and an update based on an older version does not replace it', async (t) => {
  const up = await upIn(t)
  const api = KubernetesObjectApi.makeApiClient(configOf(up))
  const created = await api.create<Server>(mcpServer('notes'))
  const file = join(up.home.dir, 'resources/mcpservers/default/notes.yaml')
  const text = await readFile(file, 'utf8')
  await writeFile(file, `# A note of a person.\n${text.replace('untrusted', 'trusted')}`)
  await assert.rejects(api.replace({ ...created, spec: { url: 'http://mine.example/mcp' } }), /modified/)
  assert.match(await readFile(file, 'utf8'), /^# A note of a person\.\n/)
  const read = await api.read<Server>({ ...mcpServer('notes'), metadata: { name: 'notes', namespace: 'default' } })
  assert.equal(read.spec.trust, 'trusted')

  await writeFile(file, 'spec: {half: written')
  await assert.rejects(api.create(mcpServer('notes')), /does not load: mend it or remove it first/)
  assert.equal(await readFile(file, 'utf8'), 'spec: {half: written')
})

test('only the certificate of this start is trusted, and only its token is accepted', async (t) => {
  const up = await upIn(t)
  const config = configOf(up)
  const [cluster] = config.getClusters()
  const { server = '' } = cluster ?? {}
  assert.ok(server.startsWith('https://127.0.0.1:'))
  await assert.rejects(fetch(`${server}/apis`), 'a stranger does not know the certificate')
  const users = [{ name: 'admin', token: 'another' }]
  const other = new KubeConfig()
  other.loadFromOptions({
    clusters: config.getClusters(),
    users,
    contexts: config.getContexts(),
    currentContext: 'plat',
  })
  await assert.rejects(KubernetesObjectApi.makeApiClient(other).list(API_VERSION, 'Agent'), /Unauthorized|401/)
})

test('switched off, there is neither listener nor kubeconfig', async (t) => {
  const up = await upIn(t, { resourceAPI: { enabled: false } })
  assert.equal(existsSync(up.home.kubeconfig), false)
})
