import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { rootCertificates } from 'node:tls'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { createFileStore } from '@plat/resources'
import { until as eventually } from '@plat/testkit/until'
import { type Render, startRender } from './start.ts'

const head = (kind: string, name = 'a') =>
  `apiVersion: plat.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: default}\nspec:\n`
const agent = `${head('Agent')}  image: i\n  tier: t\n  policyRef: a\n`
const policy = (action: string) => `${head('ToolPolicy')}  rules: [{name: r, action: ${action}}]\n`
const server = (name: string, ...spec: readonly string[]) =>
  `${head('MCPServer', name)}  url: https://a.example/mcp\n${spec.map((line) => `  ${line}\n`).join('')}`

/** A folder with resources, Secrets and ConfigMaps, and what is rendered from them. */
async function setUp(t: TestContext) {
  const root = await mkdtemp(join(tmpdir(), 'plat-'))
  const clock = new TestClock()
  const store = createFileStore({ dir: join(root, 'resources'), clock, log: silentLog })
  let render: Render | null = null
  t.after(async () => {
    await render?.stop()
    store.close()
    await rm(root, { recursive: true })
  })
  const dirs = { outDir: join(root, 'rendered'), credentialsDir: join(root, 'credentials') }
  const from = { secretsDir: join(root, 'secrets'), currency: 'USD', configMapsDir: join(root, 'configmaps') }
  const put = async (path: string, text: string) => {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  const read = (path: string) => readFile(join(root, path), 'utf8')
  const json = async (name: string) => JSON.parse(await read(`rendered/${name}.json`))
  /** The store looks and the renderer writes as the clock goes on: both wait for the disk. */
  const until = (holds: () => Promise<boolean> | boolean) =>
    eventually(holds, 'what is rendered', () => clock.advance(1000))
  const start = async (): Promise<Render> => {
    render = await startRender({ store, ...dirs, ...from, log: silentLog, clock })
    return render
  }
  return { root, put, read, json, until, start, ...dirs }
}

test('resources are rendered at start and again on change, with private modes, and nothing is written twice', async (t) => {
  const { put, json, until, start, outDir } = await setUp(t)
  await put('resources/agents/default/a.yaml', agent)
  await put('resources/toolpolicies/default/a.yaml', policy('allow'))
  const render = await start()
  assert.deepEqual((await json('policies')).policies[0].agents, ['a'])
  assert.deepEqual(render.refused(), [])
  assert.equal((await stat(outDir)).mode & 0o777, 0o700)
  const { mode, ino } = await stat(join(outDir, 'upstreams.json'))
  assert.equal(mode & 0o777, 0o600)

  await put('resources/toolpolicies/default/a.yaml', policy('require_approval, quorum: {minApprovers: 0}'))
  await until(async () => (await json('policies')).generation === 2)
  assert.equal((await json('policies')).policies[0].rules[0].name, 'refused')
  const line = 'ToolPolicy default/a rules[0].quorum.minApprovers: 0 needs userConfirmation: somebody must agree'
  await until(() => render.refused().includes(line))

  await put('resources/toolpolicies/default/a.yaml', 'broken: [')
  await until(async () => (await json('policies')).policies.length === 0)
  assert.ok(render.refused().some((problem) => problem.startsWith('toolpolicies/default/a.yaml:1: ')))
  await until(() =>
    render.refused().includes('Agent default/a policyRef: no ToolPolicy default/a: the agent is denied'),
  )
  assert.equal((await stat(join(outDir, 'upstreams.json'))).ino, ino)
})

test('the SovereigntyPolicy and Cedar texts are followed as well', async (t) => {
  const { put, json, until, start } = await setUp(t)
  const render = await start()
  assert.deepEqual(await json('sovereignty'), { version: 1 })
  const sovereignty = 'apiVersion: plat.dev/v1alpha1\nkind: SovereigntyPolicy\nmetadata: {name: eu}\nspec: '
  await put('resources/sovereigntypolicies/eu.yaml', `${sovereignty}{allowedJurisdictions: [EU]}\n`)
  await until(async () => (await json('sovereignty')).allowedJurisdictions?.[0] === 'EU')
  await put('resources/sovereigntypolicies/eu.yaml', `${sovereignty}{allowedCIDRs: [10.0.0.0/99]}\n`)
  await until(async () => (await json('sovereignty')).allowedJurisdictions?.[0] === 'ZZ')
  await put('resources/toolpolicies/default/a.yaml', `${head('ToolPolicy')}  cedar: permit(\n`)
  await until(() => render.refused().some((line) => line.startsWith('ToolPolicy default/a cedar: not Cedar at line 1')))
  const range = 'SovereigntyPolicy eu allowedCIDRs[0]: not an address range: every upstream is refused'
  assert.ok(render.refused().includes(range))
  assert.equal((await json('policies')).policies[0].cedar, 'permit(')
})

test('Secrets that servers refer to become credential files, follow every change, and go with their server', async (t) => {
  // Shows D2.auth.secretRef.name, D2.auth.secretRef.key, D2.auth.oauth.clientIdRef, D2.auth.oauth.clientSecretRef and
  // D2.auth.mtls.certSecretRef.
  const { root, put, read, until, start, credentialsDir } = await setUp(t)
  const ref = (name: string, key: string) => `{name: ${name}, key: ${key}}`
  await put(
    'resources/mcpservers/default/notes.yaml',
    server('notes', `auth: {type: bearerSecret, secretRef: ${ref('s', 'k')}}`),
  )
  await put(
    'resources/mcpservers/default/o.yaml',
    server(
      'o',
      'auth:',
      '  type: oauthClientCredentials',
      '  oauth:',
      '    tokenURL: https://login.example/token',
      `    clientIdRef: ${ref('app', 'id')}`,
      `    clientSecretRef: ${ref('app', 'secret')}`,
    ),
  )
  await put('resources/mcpservers/default/m.yaml', server('m', 'auth: {type: mtls, mtls: {certSecretRef: {name: c}}}'))
  const secrets = { 's/k': 'first', 'app/id': 'plat', 'app/secret': 'x', 'c/tls.crt': 'CRT', 'c/tls.key': 'KEY' }
  for (const [name, text] of Object.entries(secrets)) await put(`secrets/default/${name}`, text)
  await put('secrets/other/s/k', 'of another namespace')
  const render = await start()
  const files = [
    'default.m.crt',
    'default.m.key',
    'default.notes.token',
    'default.o.client-id',
    'default.o.client-secret',
  ]
  assert.deepEqual((await readdir(credentialsDir)).toSorted(), files)
  assert.equal(await read('credentials/default.notes.token'), 'first')
  assert.equal((await stat(join(credentialsDir, 'default.notes.token'))).mode & 0o777, 0o600)
  assert.doesNotMatch(await read('rendered/upstreams.json'), /first|plat"|CRT|KEY/)
  assert.deepEqual(render.refused(), [])

  await put('secrets/default/s/k', 'second')
  await until(async () => (await read('credentials/default.notes.token')) === 'second')
  await rm(join(root, 'secrets/default/app/id'))
  const line = 'MCPServer default/o auth.oauth.clientIdRef: no Secret default/app/id: calls of this server are refused'
  await until(() => render.refused().includes(line))
  assert.deepEqual((await readdir(credentialsDir)).includes('default.o.client-id'), false)
  await rm(join(root, 'resources/mcpservers/default/m.yaml'))
  await until(async () => !(await readdir(credentialsDir)).includes('default.m.key'))
})

test('a CA bundle of a ConfigMap is rendered once it holds certificates; without it the server is refused', async (t) => {
  // Shows D2.server.caBundleRef.name, D2.server.caBundleRef.key.
  const { put, json, until, start } = await setUp(t)
  await put('resources/mcpservers/default/notes.yaml', server('notes', 'caBundleRef: {name: roots, key: ca.crt}'))
  const render = await start()
  assert.deepEqual(render.refused(), ['MCPServer default/notes caBundleRef: no ConfigMap default/roots/ca.crt'])
  assert.deepEqual((await json('upstreams')).servers, {})
  await put('configmaps/default/roots/ca.crt', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
  const unreadable = 'MCPServer default/notes caBundleRef: default/roots/ca.crt holds no PEM certificates'
  await until(() => render.refused().includes(unreadable))
  const bundle = rootCertificates.slice(0, 2).join('\n')
  await put('configmaps/default/roots/ca.crt', bundle)
  await until(async () => (await json('upstreams')).servers['default/notes']?.caPEM === bundle)
  await until(() => render.refused().length === 0)
})

test('a failure of the first rendering is reported', async (t) => {
  const { root, outDir, start } = await setUp(t)
  await writeFile(join(root, 'rendered'), '')
  await assert.rejects(start(), /ENOTDIR|EEXIST/, outDir)
})

/** 1000 characters that do not compress. */
function noise(seed: number): string {
  const blocks = Array.from({ length: 16 }, (_, n) => createHash('sha512').update(`${seed} ${n}`).digest('base64url'))
  return `x${blocks.join('').slice(0, 999)}`
}

test('a rendered file that exceeds a ConfigMap is in force with files, and reported', async (t) => {
  // Shows D3.limit.configMap.
  const { put, json, until, start } = await setUp(t)
  const rules = (count: number) =>
    Array.from({ length: count }, (_, n) => `{name: r${n}, action: allow, reason: ${noise(n)}}`).join(', ')
  const filled = async (count: number) => {
    for (const name of ['a', 'b', 'c'])
      await put(
        `resources/toolpolicies/default/${name}.yaml`,
        `${head('ToolPolicy', name)}  rules: [${rules(count)}]\n`,
      )
  }
  await put('resources/agents/default/a.yaml', agent)
  await filled(1000)
  const render = await start()
  assert.match(render.outgrown().join(), /^policies\.json has \d{7} bytes: a ConfigMap holds 1048576$/)
  assert.deepEqual(render.refused(), [])
  assert.equal((await json('policies')).policies[0].rules.length, 1000)
  await filled(10)
  await until(() => render.outgrown().length === 0)
})
