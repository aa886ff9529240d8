import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { KubernetesApiError } from '@plat/kubernetes'
import { isClusterKind, isKind, type Kind, validate } from '@plat/resources'
import { parseAllDocuments } from 'yaml'
import { type Cluster, startCluster } from './plat.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const API = '/apis/plat.dev/v1alpha1'

let cluster: Cluster

before(async () => {
  cluster = await startCluster()
})

after(async () => {
  await cluster?.stop()
})

interface Served {
  readonly name: string
  readonly kind: Kind
  readonly namespaced: boolean
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
}

async function served(name: string): Promise<Served | undefined> {
  const { body } = await cluster.server.ask('GET', API)
  const { resources }: { resources?: readonly Served[] } = body
  return resources?.find((one) => one.name === name)
}

/** Result of a dry-run create at the API server; the causes of a refusal as lines. */
async function tried(kind: Kind, object: object): Promise<readonly string[]> {
  const { namespace = '' }: { namespace?: string } = Object(Object(object).metadata)
  const plural = (await pluralOf())[kind]
  const scope = isClusterKind(kind) ? '' : `/namespaces/${namespace}`
  try {
    const query = { dryRun: 'All', fieldValidation: 'Strict' }
    await cluster.api.ask({ method: 'POST', path: `${API}${scope}/${plural}`, query, body: object })
    return []
  } catch (error) {
    if (!(error instanceof KubernetesApiError)) throw error
    if (error.causes.length === 0) return [error.message]
    return error.causes.map(({ field, message }) => `${field}: ${message}`)
  }
}

async function pluralOf(): Promise<Readonly<Record<string, string>>> {
  const { body } = await cluster.server.ask('GET', API)
  const { resources = [] }: { resources?: readonly Served[] } = body
  return Object.fromEntries(resources.filter(({ name }) => !name.includes('/')).map(({ kind, name }) => [kind, name]))
}

test('Agent is served with its names, category, status subresource and columns', async () => {
  // Shows D2.kind.agent.shortNames, D2.kind.agent.category, D2.kind.agent.columns.
  const agents = await served('agents')
  assert.deepEqual([agents?.kind, agents?.namespaced, agents?.categories], ['Agent', true, ['plat']])
  assert.deepEqual(agents?.shortNames, ['platagent', 'ag'])
  assert.equal((await served('agents/status'))?.kind, 'Agent')
  const spec = { image: 'registry/a:1', tier: 'tier-1', profile: 'browser', policyRef: 'p' }
  const object = { apiVersion: 'plat.dev/v1alpha1', kind: 'Agent', metadata: { name: 'shown' }, spec }
  await cluster.server.ask('POST', `${API}/namespaces/default/agents`, object)
  const condition = { reason: 'R', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }
  const conditions = [
    { type: 'Ready', status: 'True', ...condition },
    { type: 'SovereigntyCompliant', status: 'False', ...condition },
  ]
  const status = { activeSessions: 3, conditions }
  await cluster.server.ask('PATCH', `${API}/namespaces/default/agents/shown/status`, { status })
  const { columns, rows } = await cluster.table(`${API}/namespaces/default/agents`)
  assert.deepEqual(columns, ['Name', 'Tier', 'Profile', 'Ready', 'Sovereign', 'Policy', 'Image', 'Sessions', 'Age'])
  assert.deepEqual(rows[0]?.slice(0, 8), ['shown', 'tier-1', 'browser', 'True', 'False', 'p', 'registry/a:1', 3])
})

test('MCPServer is served with its names, category, status subresource and columns', async () => {
  // Shows D2.kind.server.shortNames, D2.kind.server.category, D2.kind.server.columns.
  const servers = await served('mcpservers')
  assert.deepEqual([servers?.kind, servers?.namespaced, servers?.categories], ['MCPServer', true, ['plat']])
  assert.deepEqual(servers?.shortNames, ['mcps', 'mcp'])
  assert.equal((await served('mcpservers/status'))?.kind, 'MCPServer')
  const spec = { url: 'https://a.example/mcp', auth: {}, trust: 'trusted' }
  const object = { apiVersion: 'plat.dev/v1alpha1', kind: 'MCPServer', metadata: { name: 'shown' }, spec }
  const { body } = await cluster.server.ask('POST', `${API}/namespaces/default/mcpservers`, object)
  assert.deepEqual(Object(body.spec).auth, { type: 'none' })
  const status = { observedTools: 7 }
  await cluster.server.ask('PATCH', `${API}/namespaces/default/mcpservers/shown/status`, { status })
  const { columns, rows } = await cluster.table(`${API}/namespaces/default/mcpservers`)
  assert.deepEqual(columns, ['Name', 'URL', 'Auth', 'Trust', 'Ready', 'Pinned', 'Tools', 'Age'])
  assert.deepEqual(rows[0]?.slice(0, 4), ['shown', 'https://a.example/mcp', 'none', 'trusted'])
  assert.equal(rows[0]?.[6], 7)
})

/** Problems of an Agent that only files may declare. */
const MISSING = ['spec.image: Required value', 'spec.tier: Required value']

test('every resource of the examples and of the golden files is accepted', async () => {
  const patterns = ['examples/*/resources/**/*.yaml', 'services/operator/render/fixtures/*/input.yaml']
  const files = globSync(patterns, { cwd: ROOT })
  const known = new Set(['default'])
  let accepted = 0
  for (const file of files) {
    for (const document of parseAllDocuments(readFileSync(path.join(ROOT, file), 'utf8'), { version: '1.1' })) {
      const object = document.toJS()
      if (!isKind(object?.kind)) continue
      const { namespace } = object.metadata
      if (namespace !== undefined && !known.has(namespace)) {
        await cluster.server.ask('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
        known.add(namespace)
      }
      const refused = object.metadata.name === 'imageless' ? MISSING : []
      assert.deepEqual(await tried(object.kind, object), refused, `${file} ${object.kind} ${object.metadata.name}`)
      accepted++
    }
  }
  assert.ok(accepted > 50, `${accepted}`)
})

const agent = (more: object) => ['Agent', { image: 'i', tier: 't', ...more }] as const
const server = (more: object) => ['MCPServer', { url: 'http://a', ...more }] as const
const ref = { name: 's', key: 'k' }

/** Objects that are invalid with files as well. */
const WRONG: readonly (readonly [Kind, object])[] = [
  agent({ profile: 'foo', maxConcurrentSessions: -1 }),
  agent({ tier: '', tools: [{ name: 'a' }, { name: 'a' }, { name: 'A' }] }),
  agent({ workspace: { size: 'x' }, budget: { currency: 'usd', perDayUSD: '1e' }, idleTimeout: '5 minutes' }),
  agent({ a2a: { expose: true } }),
  agent({ a2a: { expose: true, endpoint: 'ftp://x' } }),
  agent({ model: { provider: 'ctxengine', adapter: 'gemini', endpoint: 'http://m' } }),
  agent({ model: { endpoint: 'm', fallbacks: [{}], adapter: 'other', maxTokensPerRequest: -1 } }),
  agent({ env: [{ name: 'A', value: 'b', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] }),
  agent({ env: [{ name: 'A', valueFrom: {} }, { name: 'A=B' }] }),
  agent({ env: [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'v', path: '../x', key: 'k' } } }] }),
  agent({ resources: { claims: [{ name: 'c' }, { name: 'c' }] } }),
  ['MCPServer', {}],
  server({ url: 'ftp://x', transport: 'stdio', timeoutSeconds: 0, trust: 'maybe' }),
  server({ jurisdiction: 'Germany', dataClass: 'secret', protocolVersions: [''] }),
  server({ auth: { type: 'bearerSecret' } }),
  server({ auth: { type: 'headerSecret', headerName: 'a b', secretRef: ref } }),
  server({ auth: { type: 'headerSecret', headerName: 'a' } }),
  server({ auth: { type: 'headerSecret', secretRef: ref } }),
  server({ auth: { type: 'oauthClientCredentials' } }),
  server({ auth: { type: 'tokenExchange' } }),
  server({ auth: { type: 'mtls' } }),
  server({ auth: { type: 'bearerSecret', secretRef: ref, perUser: true } }),
  server({ auth: { type: 'none', provider: 'p' } }),
  ['BudgetPolicy', {}],
  ['BudgetPolicy', { perDay: 1, alerts: [0, 101] }],
  [
    'ToolPolicy',
    {
      mode: 'try',
      rules: [
        { name: 'a', action: 'allow' },
        { name: 'a', action: 'maybe' },
      ],
    },
  ],
  ['SovereigntyPolicy', { allowedJurisdictions: ['Germany'], allowedCIDRs: ['10.0.0.0'] }],
]

test('a resource that is refused in a file is refused by a cluster with the same message', async () => {
  // Shows D2.error.validation.exposeWithoutEndpoint, D2.error.validation.serverAuth, D2.error.validation.ctxengineAdapter.
  for (const [kind, spec] of WRONG) {
    const metadata = { name: 'a', ...(!isClusterKind(kind) && { namespace: 'default' }) }
    const object = { apiVersion: 'plat.dev/v1alpha1', kind, metadata, spec }
    const onFiles = validate(kind, {
      ...object,
      metadata: { ...metadata, ...(isClusterKind(kind) && { namespace: '' }) },
    })
    const lines = onFiles.map(({ path: field, message }) => `${field}: ${message}`)
    assert.notDeepEqual(lines, [], JSON.stringify(spec))
    assert.deepEqual((await tried(kind, object)).toSorted(), lines.toSorted(), JSON.stringify(spec))
  }
})

test('a field that a kind does not have is refused if the client validates strictly', async () => {
  const metadata = { name: 'a', namespace: 'default' }
  const object = { apiVersion: 'plat.dev/v1alpha1', kind: 'Agent', metadata, spec: { image: 'i', tier: 't', teir: 1 } }
  assert.match((await tried('Agent', object)).join(), /unknown field "spec\.teir"/)
})
