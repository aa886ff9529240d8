import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import path, { join } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { tempFolder } from '@plat/testkit/local'
import { EVERYTHING } from '@plat/testkit/mcp/everything'
import { unpackDebianPackage } from '@plat/testkit/processes/debian'
import { npmPackage } from '@plat/testkit/processes/npm'
import { pythonWith } from '@plat/testkit/processes/python'
import { until } from '@plat/testkit/until'
import { CHILD } from '../testing/bridge.ts'
import { copiedRuntime, findBubblewrap, type Rendered, startPod, startService } from '../testing/pod.ts'

const OPERATOR = join(import.meta.dirname, '../../../../services/operator/bin/plat-operator.mjs')
const FASTMCP = join(import.meta.dirname, '../../../../examples/features/stdio')
const API = '/apis/plat.dev/v1alpha1/namespaces/default'
const OUT = '/api/v1/namespaces/plat-system'
const PORT = 8443

const ROOT = path.resolve(import.meta.dirname, '../../../..')
/** Folders of this machine that an image made of it lacks: volumes of the pod, and what a container has instead. */
const LEFT_OUT = new Set(['dev', 'etc', 'mnt', 'plat', 'proc', 'sys', 'tmp'])
/** An image with everything of this machine, and the repository at `/repo`. */
const HERE = [
  ...['--tmpfs', '/', '--ro-bind', ROOT, '/repo'],
  ...readdirSync('/').flatMap((name) => (LEFT_OUT.has(name) ? [] : ['--ro-bind', `/${name}`, `/${name}`])),
]
const inImage = (file: string) => file.replace(ROOT, '/repo')
const NODE = inImage(process.execPath)

const filesystem = await npmPackage('@modelcontextprotocol/server-filesystem', '2026.8.31')
const python = await pythonWith(join(FASTMCP, 'requirements.txt'))
let bwrap: string
let runtime: string

before(() => {
  bwrap = findBubblewrap()
  runtime = copiedRuntime()
})

const decoded = (data: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(Object(data)).map(([key, text]) => [key, Buffer.from(String(text), 'base64').toString()]),
  )

interface SetUp {
  readonly stdio: object
  readonly values?: Readonly<Record<string, string>>
  readonly rules?: readonly object[]
  readonly gateway?: object
}

/** The objects and files that a real operator makes of one server. */
async function renderedBy(t: TestContext, { stdio, values = {}, rules = [{ name: 'all', action: 'allow' }] }: SetUp) {
  const api = new KubernetesApiServer()
  await api.start()
  t.after(() => api.stop())
  const data = Object.fromEntries(
    Object.entries(values).map(([key, text]) => [key, Buffer.from(text).toString('base64')]),
  )
  api.put('/api/v1/namespaces/default/secrets/own', { data })
  api.put(`${API}/mcpservers/files`, { spec: { stdio: { image: 'i', ...stdio } } })
  api.put(`${API}/toolpolicies/p`, { spec: { rules } })
  api.put(`${API}/agents/assistant`, { spec: { image: 'i', tier: 't', policyRef: 'p', tools: [{ name: 'files' }] } })
  const kubeconfig = join(tempFolder(), 'kubeconfig')
  const named = (name: string, more: object) => [{ name, ...more }]
  const config = {
    'current-context': 'c',
    contexts: named('c', { context: { cluster: 'c', user: 'c' } }),
    clusters: named('c', { cluster: { server: api.url } }),
    users: named('c', { user: {} }),
  }
  writeFileSync(kubeconfig, JSON.stringify(config))
  const flags = ['-namespace=plat-system', '-leader-elect=false', '-metrics-bind-address=127.0.0.1:0']
  const stdioFlags = ['-stdio-image=plat:1', '-gateway-labels=app=gateway']
  const args = [OPERATOR, '-kubeconfig', kubeconfig, ...flags, ...stdioFlags]
  const operator = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  t.after(() => void operator.kill('SIGKILL'))
  const object = (path: string): Rendered | undefined => api.get(path)
  const deployment = () => object('/apis/apps/v1/namespaces/default/deployments/plat-stdio-files')
  const fileOf = (name: string): string => {
    const { data: plain, binaryData } = Object(object(`${OUT}/configmaps/plat-${name}`))
    const packed = binaryData?.[`${name}.json.gz`]
    return packed === undefined ? (plain?.[`${name}.json`] ?? '') : gunzipSync(Buffer.from(packed, 'base64')).toString()
  }
  await until(() => deployment() !== undefined && fileOf('upstreams').includes('default/files'), 'the rendering')
  return {
    deployment: deployment() ?? {},
    config: decoded(Object(object('/api/v1/namespaces/default/secrets/plat-stdio-files')).data),
    credentials: decoded(Object(object(`${OUT}/secrets/plat-upstream-credentials`)).data),
    upstreams: fileOf('upstreams'),
    policies: fileOf('policies'),
  }
}

let addresses = 0

/** A pod behind its Service, and a real gateway on the rendered files, whose resolver knows the Service. */
async function setUp(
  t: TestContext,
  setting: SetUp,
  image: readonly string[] = HERE,
  env: Readonly<Record<string, string>> = {},
) {
  const rendered = await renderedBy(t, setting)
  const address = `127.8.${process.pid % 250}.${++addresses}`
  const service = await startService(t, address, PORT)
  const secrets = { own: setting.values ?? {}, 'plat-stdio-files': rendered.config }
  const start = async () => {
    const pod = await startPod(t, { bwrap, runtime, deployment: rendered.deployment, secrets, image, env })
    service.lead(pod.port)
    return pod
  }
  const pod = await start()
  const { gateway, dir } = await gatewayOn(t, rendered, { address, config: setting.gateway ?? {} })
  return { ...rendered, address, pod, start, dir, ...sessionsOf(t, gateway) }
}

/** Starts a gateway on rendered files; the name of the Service is that of `address`. */
async function gatewayOn(
  t: TestContext,
  rendered: Awaited<ReturnType<typeof renderedBy>>,
  { address, config }: { readonly address: string; readonly config: object },
) {
  const dir = tempFolder()
  mkdirSync(join(dir, 'credentials'))
  for (const [name, text] of Object.entries(rendered.credentials)) writeFileSync(join(dir, 'credentials', name), text)
  const hosts = `127.0.0.1 localhost\n${address} plat-stdio-files.default.svc\n`
  const files = { 'upstreams.json': rendered.upstreams, 'policies.json': rendered.policies, hosts }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text)
  const resolver = ['--ro-bind', join(dir, 'hosts'), '/etc/hosts']
  const gateway = await startGatewayProcess({
    servers: { files: '' },
    config: {
      upstreamsFile: join(dir, 'upstreams.json'),
      policyFile: join(dir, 'policies.json'),
      upstreamCredentialsDir: join(dir, 'credentials'),
      ...config,
    },
    within: [bwrap, '--bind', '/', '/', '--dev', '/dev', ...resolver, '--die-with-parent', '--'],
  })
  t.after(() => gateway.close())
  return { gateway, dir }
}

/** Clients of the server, one for each session. */
function sessionsOf(t: TestContext, gateway: GatewayProcess) {
  const clients = new Map<string, Promise<Client>>()
  const connected = async (session: string): Promise<Client> => {
    const sub = `spiffe://plat.local/ns/default/agent/assistant/session/${session}`
    const token = gateway.issuer.token({ scope: 'tools:files', plat_session: session, sub })
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'legacy' } })
    const requestInit = { headers: { authorization: `Bearer ${token}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp/files`), { requestInit }))
    t.after(() => client.close())
    return client
  }
  return {
    /** Calls a tool in a session. Resolves to the text of its result, or to why there is none. */
    async call(name: string, args: Record<string, unknown> = {}, session = 's1'): Promise<string> {
      try {
        const client = await clients.getOrInsertComputed(session, connected)
        const { content } = await client.callTool({ name, arguments: args })
        return (Array.isArray(content) ? content : []).map((one) => ('text' in one ? one.text : '')).join('\n')
      } catch (error) {
        clients.delete(session)
        return String(error)
      }
    },
    close: async (session: string) => (await clients.get(session))?.close(),
  }
}

test('server-filesystem in a pod is governed: redaction, denial, its writable folder, and no other file', {
  skip: 'missing' in filesystem ? filesystem.missing : false,
}, async (t) => {
  // Shows D2.server.stdio.cluster.
  assert.ok('folder' in filesystem)
  const args = [inImage(join(filesystem.folder, 'dist/index.js')), '/mnt']
  const { call, pod } = await setUp(t, {
    stdio: { command: NODE, args, isolation: { writable: ['/mnt'] } },
    rules: [
      { name: 'no', action: 'deny', match: { tools: ['move_file'] }, reason: 'files stay' },
      { name: 'all', action: 'allow' },
    ],
    gateway: { dlpProfiles: { contacts: { detectors: ['email'] } }, dlp: { servers: { files: 'contacts' } } },
  })
  assert.match(
    await call('write_file', { path: '/mnt/note.txt', content: 'To ada@example.com.' }),
    /Successfully wrote/,
  )
  assert.match(await call('read_text_file', { path: '/mnt/note.txt' }), /To \[REDACTED:email\]\./)
  assert.match(await call('read_text_file', { path: '/etc/hostname' }), /Access denied/)
  const denied = await call('move_file', { source: '/mnt/note.txt', destination: '/mnt/other.txt' })
  assert.match(denied, /move_file was not run: files stay/)
  assert.ok(
    pod.log.some(({ stderr }) => String(stderr).includes('Secure MCP Filesystem Server')),
    'stderr is in the log',
  )
  assert.equal(await pod.stop(), 0)
})

test('server-everything and FastMCP answer in a pod', {
  skip: 'missing' in python ? python.missing : false,
}, async (t) => {
  assert.ok('path' in python)
  const one = await setUp(t, { stdio: { command: NODE, args: [inImage(EVERYTHING), 'stdio'] } })
  assert.match(await one.call('echo', { message: 'hello' }), /Echo: hello/)
  const other = await setUp(t, {
    stdio: { command: inImage(python.path), args: [inImage(join(FASTMCP, 'fastmcp_server.py'))] },
  })
  assert.match(await other.call('count', { by: 2 }), /\b2\b/)
  assert.match(await other.call('count', { by: 2 }), /\b4\b/)
})

test('an image without a C library and without Node runs the bridge', async (t) => {
  const root = tempFolder()
  mkdirSync(join(root, 'bin'))
  const busybox = join(unpackDebianPackage('busybox-static', tempFolder()), 'bin/busybox')
  writeFileSync(
    join(root, 'server.sh'),
    `while read -r line; do
  id=$(echo "$line" | /bin/busybox sed -n 's/.*"id":\\("[^"]*"\\|[0-9]*\\).*/\\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
    *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[{"type":"text","text":"key '"$KEY"' home '"$HOME"' libraries '"$(/bin/busybox ls / | /bin/busybox tr '\\n' ' ')"'"}]}}' ;;
    *) [ -n "$id" ] && echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"no"}}' ;;
  esac
done
`,
  )
  const image = [
    '--tmpfs',
    '/',
    '--ro-bind',
    busybox,
    '/bin/busybox',
    '--ro-bind',
    join(root, 'server.sh'),
    '/server.sh',
  ]
  const { call } = await setUp(
    t,
    {
      stdio: {
        command: '/bin/busybox',
        args: ['sh', '/server.sh'],
        env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'own', key: 'k' } } }],
      },
      values: { k: 'hunter2' },
    },
    image,
  )
  const text = await call('any')
  assert.match(text, /key hunter2 home \/tmp libraries bin dev etc plat proc server\.sh tmp /)
})

test('each session has a process; one that crashes starts again, and a new pod takes over', async (t) => {
  const { call, pod, start } = await setUp(t, { stdio: { command: NODE, args: [inImage(CHILD)] } })
  const textOf = (tool: string, session: string) => call(tool, {}, session)
  assert.deepEqual(
    [await textOf('count', 's1'), await textOf('count', 's1'), await textOf('count', 's2')],
    ['1', '2', '1'],
  )
  assert.notEqual(await textOf('pid', 's1'), await textOf('pid', 's2'))
  assert.match(await call('die', {}, 's1'), /upstream_error|files: it ended: exit code 7|exit code 7/)
  await until(async () => (await textOf('count', 's1')) === '1', 'the process starts again after its backoff')
  assert.equal(await textOf('count', 's2'), '2', 'the other session is undisturbed')
  assert.ok(pod.log.some(({ msg }) => msg === 'server ended unexpectedly'))
  const next = await start()
  await pod.stop()
  await until(async () => (await textOf('count', 's2')) === '1', 'the new pod answers')
  assert.equal(await next.stop(), 0)
})

test('a shared process serves all sessions', async (t) => {
  const { call } = await setUp(t, { stdio: { command: NODE, args: [inImage(CHILD)], perSession: false } })
  const pid = (session: string) => call('pid', {}, session)
  const first = await pid('s1')
  assert.match(first, /^\d+$/)
  assert.equal(await pid('s2'), first)
})

test('the gateway and the bridge each refuse who cannot prove to be the other', async (t) => {
  const { call, pod, dir, config, address } = await setUp(t, { stdio: { command: NODE, args: [inImage(CHILD)] } })
  assert.match(await call('count'), /^1$/)
  const status = await new Promise((resolve, reject) => {
    const host = 'plat-stdio-files.default.svc'
    const options = {
      host: address,
      port: PORT,
      servername: host,
      ca: config['tls.crt'],
      path: '/default/files',
      method: 'POST',
    }
    request({ ...options, headers: { authorization: 'Bearer guessed' } }, (response) => resolve(response.statusCode))
      .on('error', reject)
      .end('{}')
  })
  assert.equal(status, 401)
  // Another token in the gateway, as after a new key of the operator that the pod does not have yet.
  const token = join(dir, 'credentials/default.files.token')
  writeFileSync(token, 'x'.repeat(43))
  await until(async () => !/^\d+$/.test(await call('count')), 'the refusal')
  const processes = pod.log.filter(({ msg }) => msg === 'server started').length
  await call('count', {}, 'another')
  assert.equal(pod.log.filter(({ msg }) => msg === 'server started').length, processes, 'no process was started')
})

test('hostile servers end their own calls only', async (t) => {
  const { call, pod } = await setUp(t, {
    stdio: {
      command: NODE,
      args: [inImage(CHILD)],
      env: [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'own', key: 'k' } } }],
    },
    values: { k: 'opensesame' },
  })
  const good = call('count', {}, 'good')
  const results = await Promise.all(['huge', 'broken', 'utf8'].map((tool) => call(tool, {}, tool)))
  for (const text of results) assert.match(text, /files/)
  assert.match(await good, /^1$/)
  await call('secrets', {}, 'secrets')
  await until(() => pod.log.some(({ stderr }) => String(stderr).includes('key=')), 'stderr')
  assert.ok(!JSON.stringify(pod.log).includes('opensesame'), 'values of Secrets are not in the log')
  assert.match(await call('count', {}, 'good'), /^2$/)
})

test('one agent has its share of processes: more sessions are refused, and those that run go on', async (t) => {
  const { call, close, pod } = await setUp(t, { stdio: { command: NODE, args: [inImage(CHILD)] } })
  const mine = Array.from({ length: 32 }, (_, at) => `mine-${at}`)
  for (const session of mine) assert.match(await call('count', {}, session), /^1$/, session)
  const more: string[] = []
  for (let batch = 0; batch < 20; batch++)
    more.push(...(await Promise.all(Array.from({ length: 10 }, (_, at) => call('count', {}, `more-${batch}-${at}`)))))
  for (const text of more) assert.match(text, /32 processes of servers run, 0 of this session, and no more are allowed/)
  for (const session of mine) assert.match(await call('count', {}, session), /^2$/, session)
  assert.equal(pod.log.filter(({ msg }) => msg === 'server started').length, 32)
  await close('mine-0')
  await until(async () => (await call('count', {}, 'last')) === '1', 'an unused process makes room')
})
