import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { createFileStore, type FileStore, type Kind } from '@plat/resources'
import type { PinReport } from './pinned.ts'
import { startStatus } from './start.ts'

let root = ''
let clock: TestClock
let store: FileStore
let refused: string[]
let reports: PinReport[]
const ENDPOINTS = { 'https://login.ch.example': 'CH' }
let status: ReturnType<typeof startStatus>

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'plat-'))
  clock = new TestClock()
  store = createFileStore({ dir: join(root, 'resources'), clock, log: silentLog })
  refused = []
  reports = []
  status = startStatus({
    store,
    refused: () => refused,
    pins: () => reports,
    endpoints: () => ENDPOINTS,
    clock,
    log: silentLog,
  })
})

afterEach(async () => {
  await status.stop()
  store.close()
  await rm(root, { recursive: true })
})

async function put(kind: string, plural: string, spec: string): Promise<void> {
  const file = join(root, 'resources', plural, 'default', 'a.yaml')
  await mkdir(dirname(file), { recursive: true })
  await writeFile(
    file,
    `apiVersion: plat.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: a, namespace: default}\nspec: ${spec}\n`,
  )
}

const server = (more = '') => put('MCPServer', 'mcpservers', `{url: 'http://127.0.0.1:1/mcp'${more}}`)

async function statusOf<K extends Kind>(kind: K) {
  await status.check()
  return (await store.get(kind, { namespace: 'default', name: 'a' }))?.status
}

async function condition(kind: Kind, type: string) {
  return (await statusOf(kind))?.conditions?.find((one) => one.type === type)
}

const seen = (more: Partial<PinReport> = {}): PinReport => ({
  id: 'default/a',
  lastSeen: '2026-01-01T00:00:00Z',
  observedTools: 3,
  driftedTools: [],
  unpinnedTools: 0,
  ...more,
})

test('an object in force is Ready, with its generation; a refused one is not, and has the reason', async () => {
  // Shows D2.state.server.Ready and D2.serverStatus.observedGeneration.
  // Shows D2.serverStatus.gatewayKey and D2.serverStatus.conditions.
  await server()
  const first = await statusOf('MCPServer')
  assert.deepEqual([first?.gatewayKey, first?.observedGeneration], ['default/a', 1])
  assert.deepEqual(
    first?.conditions?.map(({ type, status, observedGeneration }) => [type, status, observedGeneration]),
    [['Ready', 'True', 1]],
  )
  refused = ['MCPServer default/a url: not a URL', 'MCPServer default/ab url: another']
  await server(', trust: trusted')
  const second = await statusOf('MCPServer')
  assert.deepEqual([second?.gatewayKey, second?.observedGeneration], [undefined, 2])
  const ready = second?.conditions?.[0]
  assert.deepEqual([ready?.status, ready?.reason, ready?.message], ['False', 'Refused', 'url: not a URL'])
})

test('agents and policies are Ready or say why not', async () => {
  // Shows D2.state.agent.Ready, D2.agentStatus.conditions and D2.agentStatus.observedGeneration.
  await put('Agent', 'agents', '{image: i, tier: t}')
  await put('ToolPolicy', 'toolpolicies', '{rules: []}')
  assert.equal((await condition('Agent', 'Ready'))?.status, 'True')
  assert.equal((await condition('ToolPolicy', 'Ready'))?.status, 'True')
  refused = ['Agent default/a policyRef: missing: the agent is denied']
  assert.equal((await condition('Agent', 'Ready'))?.message, 'policyRef: missing: the agent is denied')
  assert.equal((await condition('ToolPolicy', 'Ready'))?.status, 'True')
  assert.equal((await statusOf('Agent'))?.observedGeneration, 1)
})

test('Pinned follows what the gateway reports: unknown, true, false with the names of the tools, true again', async () => {
  // Shows D2.state.server.Pinned, D2.state.server.pinnedTrue and D2.state.server.pinnedFalse.
  // Shows D2.serverStatus.driftedTools, D2.serverStatus.observedTools and D2.serverStatus.lastSeen.
  await server()
  assert.equal(await condition('MCPServer', 'Pinned'), undefined)
  reports = [seen({ unpinnedTools: 2 })]
  assert.equal((await condition('MCPServer', 'Pinned'))?.status, 'Unknown')
  reports = [seen()]
  assert.equal((await condition('MCPServer', 'Pinned'))?.status, 'True')
  reports = [seen({ driftedTools: ['read', 'write'], observedTools: 4 })]
  const drifted = await statusOf('MCPServer')
  assert.deepEqual(drifted?.driftedTools, ['read', 'write'])
  assert.deepEqual([drifted?.observedTools, drifted?.lastSeen], [4, '2026-01-01T00:00:00Z'])
  const pinned = await condition('MCPServer', 'Pinned')
  assert.deepEqual([pinned?.status, pinned?.message], ['False', 'differ from every pin: read, write'])
  // The gateway started again and has seen nothing yet: what was known stays known.
  reports = []
  assert.deepEqual(await statusOf('MCPServer'), drifted)
  reports = [seen()]
  assert.equal((await condition('MCPServer', 'Pinned'))?.status, 'True')
  assert.deepEqual((await statusOf('MCPServer'))?.driftedTools, [])
})

test('the operator writes the status: people cannot, and what they write into the spec leaves it alone', async () => {
  // Shows D2.kind.agent.statusSubresource and D2.kind.server.statusSubresource.
  await put('Agent', 'agents', '{image: i, tier: t}')
  await server()
  const before = await statusOf('MCPServer')
  assert.notEqual(await statusOf('Agent'), undefined)
  const generations = async () => [
    (await store.get('MCPServer', { namespace: 'default', name: 'a' }))?.metadata.generation,
    (await store.get('Agent', { namespace: 'default', name: 'a' }))?.metadata.generation,
  ]
  assert.deepEqual(await generations(), [1, 1])
  await server(', trust: trusted')
  assert.deepEqual((await store.get('MCPServer', { namespace: 'default', name: 'a' }))?.status, before)
  assert.deepEqual(await generations(), [2, 1])
  for (const [kind, plural] of Object.entries({ Agent: 'agents', MCPServer: 'mcpservers' })) {
    await put(kind, plural, `{}\nstatus: {conditions: []}`)
  }
  await store.check()
  assert.match(store.problems().join('\n'), /agents.*status: unknown field[\s\S]*mcpservers.*status: unknown field/)
})

test('with mode off nothing is said to be pinned', async () => {
  await server(", toolPins: {mode: 'off'}")
  assert.equal((await condition('MCPServer', 'Pinned'))?.reason, 'PinsOff')
})

test('a condition keeps the time of its last change of status, whatever else changes', async () => {
  // Shows D2.condition.lastTransitionTime and D2.condition.observedGeneration.
  await server()
  refused = ['MCPServer default/a url: first']
  const first = await condition('MCPServer', 'Ready')
  await clock.advance(60_000)
  refused = ['MCPServer default/a url: second']
  const second = await condition('MCPServer', 'Ready')
  assert.deepEqual([second?.message, second?.lastTransitionTime], ['url: second', first?.lastTransitionTime])
  refused = []
  assert.notEqual((await condition('MCPServer', 'Ready'))?.lastTransitionTime, first?.lastTransitionTime)
})

test('a report without changes is written every ten minutes, not with every call', async () => {
  await server()
  reports = [seen()]
  await status.check()
  const file = join(root, '.plat', 'state', 'resources', 'mcpservers', 'default', 'a.json')
  const written = await stat(file)
  reports = [seen({ lastSeen: '2026-01-01T00:09:59Z' })]
  await status.check()
  assert.equal((await stat(file)).ino, written.ino)
  reports = [seen({ lastSeen: '2026-01-01T00:10:00Z' })]
  assert.equal((await statusOf('MCPServer'))?.lastSeen, '2026-01-01T00:10:00Z')
})

test('an invalid status is refused by the store and logged, and does not block others', async () => {
  // Shows D2.serverStatus.driftedTools.max.
  await server()
  const plain = 'apiVersion: plat.dev/v1alpha1\nkind: MCPServer\nmetadata: {name: b, namespace: default}\n'
  await writeFile(join(root, 'resources', 'mcpservers', 'default', 'b.yaml'), `${plain}spec: {url: 'http://b/mcp'}\n`)
  reports = [seen({ driftedTools: Array.from({ length: 65 }, (_, at) => `tool-${at}`) })]
  await assert.rejects(status.check(), /^Error: MCPServer default\/a: .*driftedTools/)
  const other = await store.get('MCPServer', { namespace: 'default', name: 'b' })
  assert.equal(other?.status?.gatewayKey, 'default/b')
})

const plain = (kind: string, name: string) =>
  `apiVersion: plat.dev/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}}\n`

const policyFile = () => join(root, 'resources', 'sovereigntypolicies', 'eu.yaml')

/** Declares the SovereigntyPolicy, or removes it. */
const sovereignty = (spec: string | null) =>
  spec === null ? rm(policyFile()) : writeFile(policyFile(), `${plain('SovereigntyPolicy', 'eu')}spec: ${spec}\n`)

/** The condition SovereigntyCompliant as one text. */
async function sovereign(kind: Kind) {
  const one = await condition(kind, 'SovereigntyCompliant')
  return one === undefined ? undefined : `${one.status} ${one.reason} ${one.message}`.trim()
}

test('SovereigntyCompliant follows the SovereigntyPolicy: of a server where it runs, of an agent everything that it relies on', async () => {
  // Shows D2.state.server.SovereigntyCompliant and D2.state.agent.SovereigntyCompliant.
  await mkdir(dirname(policyFile()), { recursive: true })
  const model =
    '{endpoint: https://m.example, jurisdiction: DE, fallbacks: [{endpoint: https://f.example, jurisdiction: US}]}'
  await server(', jurisdiction: US')
  await put(
    'Agent',
    'agents',
    `{image: i, tier: t, tools: [{name: a}, {name: b, upstreamURL: 'https://b.example'}], model: ${model}}`,
  )
  assert.deepEqual([await sovereign('MCPServer'), await sovereign('Agent')], [undefined, undefined])
  await sovereignty('{allowedJurisdictions: [EU], requireJurisdiction: true}')
  assert.equal(await sovereign('MCPServer'), 'False NotCompliant runs in US, which is not allowed')
  assert.equal(
    await sovereign('Agent'),
    'False NotCompliant model.fallbacks[0]: runs in US, which is not allowed; ' +
      'tools[a]: runs in US, which is not allowed; tools[b]: does not say where it runs, which is required',
  )
  await put(
    'Agent',
    'agents',
    '{image: i, tier: t, model: {endpoint: https://m.example, adapter: bedrock, region: us-east-1}}',
  )
  assert.equal(await sovereign('Agent'), 'False NotCompliant model: runs in US, which is not allowed')
  await sovereignty('{allowedJurisdictions: [EU, US]}')
  await server(', jurisdiction: US')
  assert.deepEqual([await sovereign('MCPServer'), await sovereign('Agent')], ['True Compliant', 'True Compliant'])
  await sovereignty('{dataClassRules: {internal: {deniedJurisdictions: [US]}}}')
  assert.equal(await sovereign('MCPServer'), 'False NotCompliant runs in US, which is denied for internal data')
  await put('Agent', 'agents', '{image: i, tier: t}')
  const tierFile = join(root, 'resources', 'trusttiers', 't.yaml')
  await mkdir(dirname(tierFile), { recursive: true })
  await writeFile(tierFile, `${plain('TrustTier', 't')}spec: {jurisdiction: US}\n`)
  assert.equal(await sovereign('Agent'), 'False NotCompliant tier: runs in US, which is denied for internal data')
  await rm(tierFile)
  await sovereignty(null)
  const gone = 'Unknown NoSovereigntyPolicy there is no SovereigntyPolicy'
  assert.deepEqual([await sovereign('MCPServer'), await sovereign('Agent')], [gone, gone])
})

test('SovereigntyCompliant judges the token endpoint of a server, which receives the secret of its client', async () => {
  await mkdir(dirname(policyFile()), { recursive: true })
  await sovereignty('{allowedJurisdictions: [EU, US]}')
  const grant = (tokenURL: string) =>
    `{tokenURL: '${tokenURL}', clientIdRef: {name: app, key: id}, clientSecretRef: {name: app, key: secret}}`
  const oauth = (tokenURL: string) =>
    server(`, jurisdiction: DE, auth: {type: oauthClientCredentials, oauth: ${grant(tokenURL)}}`)
  await oauth('https://login.ch.example/token')
  await put('Agent', 'agents', '{image: i, tier: t, tools: [{name: a}]}')
  assert.deepEqual(
    [await sovereign('MCPServer'), await sovereign('Agent')],
    [
      'False NotCompliant auth.oauth.tokenURL: runs in CH, which is not allowed',
      'False NotCompliant tools[a].auth.oauth.tokenURL: runs in CH, which is not allowed',
    ],
  )
  await oauth('https://elsewhere.example/token')
  assert.deepEqual([await sovereign('MCPServer'), await sovereign('Agent')], ['True Compliant', 'True Compliant'])
  await sovereignty('{requireJurisdiction: true}')
  assert.match(String(await sovereign('MCPServer')), /^False .*auth\.oauth\.tokenURL: does not say where it runs/)
  await oauth('http://login.team.svc:8080/token')
  assert.equal(await sovereign('MCPServer'), 'True Compliant', 'a service of the cluster is where the gateway is')
  await sovereignty(null)
})

test('a SovereigntyPolicy is Ready or says why not', async () => {
  const path = join(root, 'resources', 'sovereigntypolicies', 'a.yaml')
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, 'apiVersion: plat.dev/v1alpha1\nkind: SovereigntyPolicy\nmetadata: {name: a}\nspec: {}\n')
  const ready = async () => {
    await status.check()
    const object = await store.get('SovereigntyPolicy', { namespace: '', name: 'a' })
    return object?.status?.conditions?.find(({ type }) => type === 'Ready')
  }
  assert.equal((await ready())?.status, 'True')
  refused = ['SovereigntyPolicy a metadata.name: there is more than one', 'SovereigntyPolicy ab metadata.name: another']
  assert.equal((await ready())?.message, 'metadata.name: there is more than one')
})

test('ProviderToolsAllowed says which provider-hosted tools the TrustTier does not let an agent have', async () => {
  // Shows D2.state.agent.ProviderToolsAllowed.
  const tier = async (allowed: string) => {
    const path = join(root, 'resources', 'trusttiers', 't.yaml')
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, `apiVersion: plat.dev/v1alpha1\nkind: TrustTier\nmetadata: {name: t}\nspec: {${allowed}}\n`)
  }
  await put('Agent', 'agents', '{image: i, tier: t, model: {providerTools: [web_search, code_execution]}}')
  assert.equal(await condition('Agent', 'ProviderToolsAllowed'), undefined)
  await tier('allowedProviderTools: [web_search]')
  const dropped = await condition('Agent', 'ProviderToolsAllowed')
  assert.deepEqual([dropped?.status, dropped?.message], ['False', 'the TrustTier t does not allow code_execution'])
  await tier('')
  assert.equal((await condition('Agent', 'ProviderToolsAllowed'))?.status, 'True')
  assert.equal((await store.get('TrustTier', { namespace: '', name: 't' }))?.status?.conditions?.[0]?.status, 'True')
})
