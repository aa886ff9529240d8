import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { noClouds } from '@plat/cloud/testing'
import { systemIds, TestClock } from '@plat/core'
import { type Log, silentLog } from '@plat/process'
import type { ModelRouteEntry } from '@plat/resources/rendered'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { type Body, type Call, type Identity, isDenial, type Operation, Snapshots } from '../../call/index.ts'
import { testCall } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { recordedMetrics } from '../../testing/metrics.ts'
import { decodeModels } from './decode.ts'
import { createModels, type ModelsOptions } from './index.ts'
import { buildRoutes } from './registry.ts'
import { noOwners } from './stored/testing.ts'

const fixed: ModelRouteEntry = {
  upstream: 'http://static.example/v1/',
  model: '',
  aliases: {},
  namespaces: [],
  agents: [],
  apiKeyFile: '',
  maxTokensPerRequest: 0,
}

const identity: Identity = {
  ...testIdentity,
  scopes: new Set(
    ['open', 'mine', 'theirs', 'elsewhere', 'gone', 'default.a', 'default.b'].map((name) => `models:${name}`),
  ),
}

interface Asks {
  readonly name?: string | null
  readonly operation?: Operation
  readonly value?: object
}

function callOf(snapshots: Snapshots, server: string, asks: Asks = {}): Call<'identity'> {
  const { name = 'm', operation = 'model.generate', value = {} } = asks
  const body: Body | null = operation === 'model.info' ? null : { bytes: new Uint8Array(0), value, args: null }
  const own = { snapshot: snapshots.current, operation, method: 'chat/completions', server, name, body }
  return testCall({ identity }, own)
}

interface Setup {
  readonly models?: ModelsOptions['config']['models']
  /** Content of the modelsFile, or null if it is missing. */
  readonly file?: object | null
  readonly log?: Log
  readonly routing?: Partial<ModelsOptions['config']['modelRouting']>
  /** Labels of the caller. */
  readonly labels?: readonly string[]
}

async function started(t: TestContext, { models = {}, file, log = silentLog, routing = {}, labels = [] }: Setup) {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'plat-'))
  const modelsFile = file === undefined ? '' : path.join(dir, 'models.json')
  const write = (content: object | string) =>
    writeFile(modelsFile, typeof content === 'string' ? content : JSON.stringify(content))
  if (file) await write(file)
  const clock = new TestClock()
  const snapshots = new Snapshots()
  const { metrics, of } = recordedMetrics()
  const modelRouting = {
    failureThreshold: 3,
    cooldownSeconds: 30,
    probeIntervalSeconds: 0,
    tierJurisdictions: {},
    dataClassModels: {},
    ...routing,
  }
  const config = { modelsFile, models, policyReloadSeconds: 2, modelRouting, cloudCredentials: noClouds }
  const dialer = { fetchBytes: () => assert.fail('nothing is probed') }
  const made = createModels({
    ...{ config, snapshots, clock, log, metrics, dialer },
    ids: systemIds(clock),
    extraCA: null,
    env: {},
    labelsOf: () => labels,
    owners: noOwners,
  })
  t.after(async () => {
    made.close()
    await rm(dir, { recursive: true })
  })
  await made.check()
  const ask = async (server: string, asks?: Asks) => {
    const answer = await made.stage.admit(callOf(snapshots, server, asks))
    if (isDenial(answer)) return answer.code
    return 'target' in answer ? answer.target : assert.fail('no target')
  }
  return { dir, write, clock, snapshots, made, ask, counts: of('plat_gateway_model_routes') }
}

const routes = {
  open: fixed,
  mine: { ...fixed, namespaces: ['default'], agents: ['a'] },
  theirs: { ...fixed, agents: ['other/a', 'b'] },
  elsewhere: { ...fixed, namespaces: ['other'] },
  unscoped: fixed,
}

test('the scope is checked before the route is looked up; then the allowlists', async (t) => {
  // Shows D3.route.namespaces, D3.route.agents
  const { ask } = await started(t, { models: routes })
  const codes = await Promise.all(['unscoped', 'nowhere', 'gone', 'theirs', 'elsewhere'].map((name) => ask(name)))
  assert.deepEqual(codes, ['insufficient_scope', 'insufficient_scope', 'unknown_route', 'forbidden', 'forbidden'])
  assert.equal(typeof (await ask('mine')), 'object')
})

test('the target of a call is its route and the model of the provider', async (t) => {
  const { ask, made, snapshots } = await started(t, { models: routes })
  const target = await ask('open')
  assert.ok(typeof target === 'object')
  assert.deepEqual(
    [target.kind, target.key, target.server, target.tool, target.trust, target.dataClass],
    ['model', 'open', 'llm/open', 'm', 'trusted', 'internal'],
  )
  assert.equal(made.route(snapshots.current, 'open')?.endpoints[0].upstream, 'http://static.example/v1')
  assert.equal(await ask('open', { name: null }), 'invalid_request')
  const info = await ask('open', { name: null, operation: 'model.info' })
  assert.ok(typeof info === 'object' && info.tool === null)
})

test('an alias is translated first, otherwise the model of the route applies', () => {
  // Shows D3.route.model, D3.route.aliases, D2.model.aliases, D2.model.name
  const modelOf = (name: string | null, more: Partial<ModelRouteEntry> = {}, at = 0) => {
    const route = buildRoutes(null, { r: { ...fixed, ...more } }).route('r')
    const endpoint = route?.endpoints[at] ?? assert.fail('no endpoint')
    return endpoint.modelFor(name)
  }
  assert.equal(modelOf('asked'), 'asked')
  assert.equal(modelOf(null), null)
  assert.equal(modelOf('asked', { model: 'forced' }), 'forced')
  assert.equal(modelOf(null, { model: 'forced' }), 'forced')
  const aliases = { asked: 'real', toString: 'real' }
  assert.equal(modelOf('asked', { model: 'forced', aliases }), 'real')
  assert.equal(modelOf('constructor', { aliases: { toString: 'real' } }), 'constructor')
})

test('a fallback inherits nothing, so its own model precedes a translated name', () => {
  // Shows D3.route.fallbacks.nothingInherited
  const upstream = 'http://other.example/v1/'
  const route = buildRoutes(null, {
    r: {
      ...fixed,
      model: 'forced',
      apiKeyFile: '/key',
      aliases: { fast: 'real' },
      fallbacks: [{ upstream }, { upstream, model: 'own' }],
    },
  }).route('r')
  const [first, free, own] = route?.endpoints ?? assert.fail('no route')
  assert.deepEqual(
    [first, free, own].map((endpoint) => [endpoint?.upstream, endpoint?.credential, endpoint?.modelFor('fast')]),
    [
      ['http://static.example/v1', { kind: 'key', source: '/key' }, 'real'],
      ['http://other.example/v1', { kind: 'none' }, 'real'],
      ['http://other.example/v1', { kind: 'none' }, 'own'],
    ],
  )
  assert.deepEqual([first?.modelFor('x'), free?.modelFor('x'), own?.modelFor('x')], ['forced', 'x', 'own'])
  assert.equal(free?.modelFor(null), null)
  assert.equal(new Set([first?.key, free?.key, own?.key]).size, 3)
})

test('different providers, models, routes or credentials at one address are different endpoints', () => {
  const upstream = 'http://one.example/v1'
  const entries = {
    plain: { upstream },
    again: { upstream },
    claude: { upstream, provider: 'anthropic' },
    model: { upstream, model: 'm' },
    key: { upstream, apiKeyFile: '/key' },
    other: { upstream, apiKeyFile: '/other' },
    bearer: { upstream, auth: { type: 'bearer' as const, tokenFile: '/key' } },
  }
  const { plain, ...fallbacks } = entries
  const route = buildRoutes(null, { r: { ...plain, fallbacks: Object.values(fallbacks) }, s: plain })
  const keys = route.endpoints.map(({ key }) => key)
  assert.equal(keys.length, 8)
  assert.equal(new Set(keys).size, 7, 'only the same endpoint of the same route is one')
  assert.ok(keys.every((key) => !key.includes('/key')))
})

test('reasoning models are recognized by name unless the route states it', () => {
  // Shows D3.route.reasoning, D2.model.reasoning, D2.model.reasoning.detected
  const takes = (model: string, reasoning?: boolean) => {
    const more = reasoning === undefined ? {} : { reasoning }
    return buildRoutes(null, { r: { ...fixed, ...more } })
      .route('r')
      ?.takesCompletionTokens(model)
  }
  for (const model of ['o1', 'o4-mini', 'gpt-5', 'gpt-5.2-nano', 'openai/gpt-5'])
    assert.equal(takes(model), true, model)
  for (const model of ['gpt-4o', 'llama-3', 'omni', 'claude-o1']) assert.equal(takes(model), false, model)
  assert.deepEqual([takes('gpt-4o', true), takes('o1', false)], [true, false])
})

test('provider-hosted tools are refused', async (t) => {
  // Shows D3.route.providerTools, D3.error.provider_hosted_tool, D2.model.providerTools.refused, D2.model.providerTools.noHostedMcp
  const { ask } = await started(t, { models: routes })
  const refused = [
    { web_search_options: {} },
    { tools: [{ type: 'function' }, { type: 'web_search_20250305' }] },
    { tools: [{ type: 'mcp', server_url: 'http://x' }] },
    { tools: [{}] },
    { tools: ['function'] },
  ]
  for (const value of refused) assert.equal(await ask('open', { value }), 'provider_hosted_tool', JSON.stringify(value))
  for (const value of [
    { tools: [{ type: 'function' }, { type: 'custom' }] },
    { web_search_options: null },
    { tools: [] },
  ])
    assert.equal(typeof (await ask('open', { value })), 'object')
})

const entry = { upstream: 'http://file.example/v1', agent: 'default/a' }

test('file routes win over static ones, belong to their agent, and a missing file means none', async (t) => {
  // Shows D3.models.modelsFile, D3.models.models, D3.models.modelsFile.overrides, D3.models.modelsFile.missing
  const models = { open: fixed, 'default.a': fixed }
  const file = { version: 1, models: { 'default.a': entry, 'default.b': { ...entry, agent: 'default/b' } } }
  const { ask, made, snapshots, counts } = await started(t, { models, file })
  assert.equal(made.route(snapshots.current, 'default.a')?.endpoints[0].upstream, 'http://file.example/v1')
  assert.equal(await ask('default.b'), 'forbidden')
  assert.equal(counts.at(-1), '3')
  const without = await started(t, { models, file: null })
  assert.equal(
    without.made.route(without.snapshots.current, 'default.a')?.endpoints[0].upstream,
    'http://static.example/v1',
  )
})

test('a changed file applies at the next reload; an invalid one leaves the previous one in force and is logged', async (t) => {
  const logged: unknown[] = []
  const log: Log = { ...silentLog, error: (fields) => void logged.push(fields) }
  const { write, clock, made, snapshots, ask } = await started(t, { file: { version: 1, models: {} }, log })
  assert.equal(await ask('default.a'), 'unknown_route')
  await write({ version: 1, models: { 'default.a': entry } })
  await clock.advance(2000)
  await made.check()
  const call = { ...callOf(snapshots, 'default.a') }
  assert.equal(typeof (await ask('default.a')), 'object')
  await write('{"version":1,"models":{"default.a":{"upstream":"http://x/v1","provider":"unknown"}}}')
  await made.check()
  assert.equal(typeof (await ask('default.a')), 'object')
  assert.match(JSON.stringify(logged), /models\[default\.a\]\.provider: not built yet in this version/)
  await write({ version: 1, models: { 'default.a': { ...entry, upstream: 'http://moved.example/v1' } } })
  await made.check()
  const target = { kind: 'model', key: 'default.a' } as const
  const where = await ask('default.a')
  assert.ok(typeof where === 'object' && where.key === target.key)
  const still = made.stage.still?.({ ...call, facts: { identity, target: where } })
  assert.equal(still?.code, 'unknown_route')
})

test('an unsupported or meaningless key of a route is an error that names it', () => {
  const notBuilt = 'not built yet in this version'
  const parts: readonly (readonly [more: object, problem: string])[] = [
    [{ provider: 'unknown' }, `provider: ${notBuilt}`],
    [{ provider: 'anthropic', mode: 'converse' }, 'mode: is not a mode of the provider anthropic'],
    [
      { provider: 'anthropic', mode: 'bedrock', apiVersion: '1' },
      'apiVersion: has no meaning for the provider anthropic',
    ],
    [{ provider: 'gemini', region: 'eu-1' }, 'region: has no meaning for the provider gemini'],
    [
      { provider: 'vertex', region: 'eu-1', upstream: 'https://eu-1-aiplatform.googleapis.com' },
      'project: is required with provider vertex',
    ],
    [
      { provider: 'azure-openai' },
      "upstream: must be https below azure.com or azure.us or azure.cn, since the gateway's own token goes there; otherwise set a separate key for the endpoint",
    ],
    [{ auth: { type: 'oci' } }, 'auth.type: has no meaning for the provider openai'],
    [{ auth: { type: 'azure-entra' } }, 'auth.type: has no meaning for the provider openai'],
    [
      { provider: 'bedrock', auth: { type: 'aws-sigv4', accessKeyIdFile: '/id' } },
      'auth.secretAccessKeyFile: and auth.accessKeyIdFile go together',
    ],
    [{ auth: { type: 'gcp' } }, 'auth.type: has no meaning for the provider openai'],
    [{ mode: 'native' }, 'mode: is not a mode of the provider openai'],
    [{ region: 'eu-1' }, 'region: has no meaning for the provider openai'],
    [{ project: 'p' }, 'project: has no meaning for the provider openai'],
    [{ apiVersion: '1' }, 'apiVersion: has no meaning for the provider openai'],
    [{ auth: { type: 'api-key' } }, 'apiKeyFile: is required with auth.type api-key'],
    [
      { auth: { type: 'bearer' } },
      'auth.tokenFile: this, auth.tokenEnv or apiKeyFile is required with auth.type bearer',
    ],
    [{ auth: { type: 'none' }, apiKeyFile: '/k' }, 'apiKeyFile: is not used with auth.type none'],
  ]
  for (const [more, problem] of parts) {
    const file = { version: 1, models: { 'default.a': { ...entry, ...more } } }
    const decoded = decodeModels(Buffer.from(JSON.stringify(file)))
    assert.deepEqual(decoded, { ok: false, problems: [`models[default.a].${problem}`] })
  }
  const fallbacks = [{ upstream: 'http://x/v1', provider: 'unknown' }]
  const nested = decodeModels(
    Buffer.from(JSON.stringify({ version: 1, models: { 'default.a': { ...entry, fallbacks } } })),
  )
  assert.deepEqual(nested, {
    ok: false,
    problems: ['models[default.a].fallbacks[0].provider: not built yet in this version'],
  })
  const off = { provider: 'openai', dlpProfile: 'pii', jurisdiction: 'DE', requestsPerMinute: 0, fallbacks: [] }
  const file = { version: 1, models: { 'default.a': { ...entry, ...off } } }
  assert.ok(decodeModels(Buffer.from(JSON.stringify(file))).ok)
  for (const models of [
    { nodot: entry },
    { 'default.a': { ...entry, upstream: 'ftp://x' } },
    { 'default.a': { x: 1 } },
  ])
    assert.ok(!decodeModels(Buffer.from(JSON.stringify({ version: 1, models }))).ok)
})

test('a key is read from its file, and again when it changes', async (t) => {
  // Shows D3.route.apiKeyFile
  const logged: string[] = []
  const log: Log = { ...silentLog, error: (_, message) => void logged.push(message) }
  const dir = tempFolder()
  const [good, broken] = [path.join(dir, 'key'), path.join(dir, 'broken')]
  await writeFile(good, 'sk-first\n')
  await writeFile(broken, 'two words')
  const models = { open: { ...fixed, apiKeyFile: good }, mine: { ...fixed, apiKeyFile: broken } }
  const { made, clock, ask, snapshots } = await started(t, { models, log })
  const keyOf = (name: 'open' | 'mine') => {
    const [endpoint] = made.route(snapshots.current, name)?.endpoints ?? assert.fail(name)
    const request = { origin: 'http://static.example', path: '/v1/models', method: 'GET', body: null, at: 0 }
    return made.credentials.headers(endpoint, request).authorization
  }
  assert.equal(await ask('mine'), 'upstream_credential')
  assert.equal(typeof (await ask('open')), 'object')
  assert.deepEqual([keyOf('open'), keyOf('mine')], ['Bearer sk-first', undefined])
  await writeFile(good, 'sk-second')
  await clock.advance(2000)
  await until(() => keyOf('open') === 'Bearer sk-second', 'the second key')
  assert.equal(logged.length, 1, 'an unreadable key is logged once')
  assert.ok(!logged.join('').includes('two words'))
})

test('a model that is not allowed for the data class is refused, unless another endpoint has an allowed one', async (t) => {
  const fallbacks = [{ upstream: 'http://other.example/v1', model: 'own' }]
  const models = { open: fixed, mine: { ...fixed, fallbacks } }
  const { ask } = await started(t, {
    models,
    routing: { dataClassModels: { public: ['*'], internal: ['own', 'eu-*'] } },
  })
  assert.equal(await ask('open', { name: 'gpt-5' }), 'model_not_allowed')
  assert.equal(typeof (await ask('open', { name: 'eu-1' })), 'object')
  assert.equal(typeof (await ask('mine', { name: 'gpt-5' })), 'object')
})

test('the class of a call is the higher of its route and the data that the session received', async (t) => {
  // Shows D3.modelRouting.dataClassModels
  const classOf = async (dataClass: ModelRouteEntry['dataClass'], ...labels: readonly string[]) => {
    const { ask } = await started(t, { models: { open: { ...fixed, ...(dataClass && { dataClass }) } }, labels })
    const target = await ask('open')
    return typeof target === 'object' ? target.dataClass : target
  }
  const [confidential, restricted] = ['data-class:confidential', 'data-class:restricted']
  assert.equal(await classOf(undefined), 'internal')
  assert.equal(await classOf(undefined, 'untrusted-input', 'confidential', 'data-class:public'), 'internal')
  assert.equal(await classOf('public'), 'public')
  assert.equal(await classOf('public', confidential), 'confidential')
  assert.equal(await classOf(undefined, restricted, confidential), 'restricted')
  assert.equal(await classOf('restricted', confidential), 'restricted')
})

test('a route has at most eight fallbacks and sixteen provider-hosted tools', () => {
  // Shows D3.limit.fallbacks, D3.limit.providerTools
  const decoded = (fallbacks: number, tools: number) => {
    const more = {
      fallbacks: Array(fallbacks).fill({ upstream: 'http://x/v1' }),
      providerTools: Array(tools).fill('web_search'),
    }
    return decodeModels(Buffer.from(JSON.stringify({ version: 1, models: { 'default.a': { ...entry, ...more } } }))).ok
  }
  assert.deepEqual([decoded(8, 16), decoded(9, 0), decoded(0, 17)], [true, false, false])
})

test('MCP servers of the provider are never allowed, whatever the list contains', async (t) => {
  const { ask } = await started(t, {
    models: { open: { ...fixed, providerTools: ['mcp', 'mcp_toolset', 'web_search'] } },
  })
  for (const type of ['mcp', 'mcp_toolset'])
    assert.equal(await ask('open', { value: { tools: [{ type }] } }), 'provider_hosted_tool')
  assert.equal(typeof (await ask('open', { value: { tools: [{ type: 'web_search_2025_08_26' }] } })), 'object')
  assert.equal(await ask('open', { value: { tools: [{ type: 'web_search_x' }] } }), 'provider_hosted_tool')
})
