import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Manifest, parseResource } from '@plat/resources'
import { renderModels } from './models.ts'

function agentWith(model: object): Manifest<'Agent'> {
  const spec = { image: 'example.com/a:1', tier: 'tier-0', policyRef: 'p', model }
  const agent = { apiVersion: 'plat.dev/v1alpha1', kind: 'Agent', metadata: { name: 'a', namespace: 'team' }, spec }
  const { object, problems } = parseResource('Agent', JSON.stringify(agent))
  return object ?? assert.fail(problems.join('\n'))
}

const nothingDeclared = {
  servers: [],
  policies: [],
  budgets: [],
  memory: [],
  sovereignty: [],
  tiers: [],
  home: 'plat-system',
  cedar: null,
  currency: 'USD',
  bundles: { texts: new Map(), withheld: new Map() },
}

function routeOf(model: object) {
  return renderModels(
    { ...nothingDeclared, agents: [agentWith(model)] },
    ({ namespace, secret }) => `/secrets/${namespace}/${secret.name}/${secret.key}`,
  ).file.models['team.a']
}

test('a bare host gets /v1, a trailing /chat/completions goes, any other path stays', () => {
  // Shows D2.model.endpoint, D2.model.endpoint.bareHost, D2.model.endpoint.chatCompletionsStripped
  const cases = {
    'https://llm.example': 'https://llm.example/v1',
    'https://llm.example/': 'https://llm.example/v1',
    'http://10.0.0.7:8000': 'http://10.0.0.7:8000/v1',
    'https://llm.example/v1': 'https://llm.example/v1',
    'https://llm.example/v1/': 'https://llm.example/v1',
    'https://llm.example/v1/chat/completions': 'https://llm.example/v1',
    'https://llm.example/chat/completions': 'https://llm.example/v1',
    'https://llm.example/openai/v1/chat/completions/': 'https://llm.example/openai/v1',
  }
  for (const [endpoint, upstream] of Object.entries(cases)) assert.equal(routeOf({ endpoint })?.upstream, upstream)
})

test('the key of a Secret is rendered as the path of a file, for the agent alone', () => {
  // Shows D2.model.apiKeySecretRef.name, D2.model.apiKeySecretRef.key
  const route = routeOf({ endpoint: 'https://llm.example', apiKeySecretRef: { name: 'llm', key: 'api.key' } })
  assert.deepEqual([route?.apiKeyFile, route?.agent], ['/secrets/team/llm/api.key', 'team/a'])
})

test('the provider ctxengine becomes that of the route', () => {
  // Shows D2.model.provider.ctxengine.
  const model = { provider: 'ctxengine', endpoint: 'http://engine.example:9400', name: 'small' }
  const route = { provider: 'ctxengine', upstream: 'http://engine.example:9400/v1', model: 'small', agent: 'team/a' }
  assert.deepEqual([routeOf(model), routeOf({ ...model, adapter: 'openai' })], [route, route])
})

test('names that would lead out of the folder of secrets give no route', () => {
  const endpoint = 'https://llm.example'
  for (const name of ['..', '.', '../other', 'a/b', '../../etc']) {
    assert.equal(routeOf({ endpoint, apiKeySecretRef: { name, key: 'key' } }), undefined, name)
  }
  assert.equal(routeOf({ endpoint, apiKeySecretRef: { name: 'llm', key: '..' } }), undefined)
})

test('a token of the gateway itself goes nowhere but to its cloud', () => {
  const place = { region: 'europe-west4', project: 'my-project' }
  const adapters = [
    { adapter: 'vertex', ...place },
    { adapter: 'anthropic', adapterMode: 'vertex', ...place },
    { adapter: 'azure-openai' },
  ]
  const elsewhere = [
    'https://evil.example',
    'http://x.googleapis.com',
    'https://googleapis.com.evil.example',
    'https://xazure.com',
  ]
  for (const adapter of adapters) {
    for (const endpoint of elsewhere) {
      assert.equal(routeOf({ ...adapter, endpoint }), undefined, endpoint)
      const withFallback = { endpoint: 'https://llm.example', fallbacks: [{ ...adapter, endpoint }] }
      assert.equal(routeOf(withFallback), undefined, endpoint)
      const apiKeySecretRef = { name: 'own', key: 'key' }
      assert.notEqual(routeOf({ ...adapter, endpoint, apiKeySecretRef }), undefined, 'with its own key')
    }
  }
})

test('the name of a provider is for people: it changes nothing', () => {
  // Shows D2.model.provider
  const model = { endpoint: 'https://llm.example', adapter: 'gemini', name: 'gemini-3' }
  assert.deepEqual(routeOf({ ...model, provider: 'anthropic' }), routeOf(model))
  assert.notEqual(routeOf(model), undefined)
})

test('without an endpoint there is no route', () => {
  assert.equal(routeOf({ name: 'informational' }), undefined)
})

test('the adapter and what belongs to it are rendered, for fallbacks too; what the gateway would refuse gives no route', () => {
  // Shows D2.model.adapter.anthropic, D2.model.adapter.azure-openai, D2.model.adapterMode.azure-openai,
  // D2.model.adapterMode.default, D2.model.providerTools, D2.fallback.adapter, D2.fallback.adapterMode, D2.fallback.apiVersion
  const route = routeOf({
    endpoint: 'https://api.anthropic.com',
    adapter: 'anthropic',
    apiVersion: '2023-06-01',
    providerTools: ['web_search'],
    fallbacks: [
      {
        endpoint: 'https://x.openai.azure.com',
        adapter: 'azure-openai',
        adapterMode: 'deployments',
        apiVersion: '2024-10-21',
      },
    ],
  })
  assert.deepEqual(route, {
    provider: 'anthropic',
    apiVersion: '2023-06-01',
    upstream: 'https://api.anthropic.com/v1',
    providerTools: ['web_search'],
    fallbacks: [
      {
        provider: 'azure-openai',
        mode: 'deployments',
        apiVersion: '2024-10-21',
        upstream: 'https://x.openai.azure.com/v1',
      },
    ],
    agent: 'team/a',
  })
  const endpoint = 'https://llm.example'
  // Shows D2.model.adapter.openai
  assert.equal(routeOf({ endpoint, adapter: 'openai' })?.provider, 'openai')
  for (const more of [
    { adapter: 'gemini', region: 'eu-1' },
    { adapter: 'bedrock', adapterMode: 'native' },
    { adapter: 'vertex', region: 'eu-1' },
    { adapter: 'bedrock', adapterMode: 'openai', project: 'my-project' },
    { adapter: 'vertex', adapterMode: 'openai', region: 'eu-1' },
    { region: 'eu-1' },
    { adapter: 'anthropic', adapterMode: 'vertex' },
    { adapter: 'anthropic', adapterMode: 'bedrock', apiVersion: '1' },
    { adapterMode: 'v1' },
    { apiVersion: '1' },
  ]) {
    assert.equal(routeOf({ endpoint, ...more }), undefined, JSON.stringify(more))
    assert.equal(routeOf({ endpoint, fallbacks: [{ endpoint, ...more }] }), undefined, JSON.stringify(more))
  }
})

test('the region and the project of a cloud are rendered', () => {
  // Shows D2.model.region, D2.model.project, D2.fallback.region, D2.fallback.project
  const endpoint = 'https://europe-west4-aiplatform.googleapis.com/v1'
  const vertex = { endpoint, adapter: 'vertex', adapterMode: 'openai', region: 'europe-west4', project: 'my-project' }
  const runtime = 'https://bedrock-runtime.eu-central-1.amazonaws.com/v1'
  const bedrock = { endpoint: runtime, adapter: 'bedrock', adapterMode: 'openai', region: 'eu-central-1' }
  const route = routeOf({ ...vertex, fallbacks: [bedrock, vertex] })
  const rendered = {
    provider: 'vertex',
    mode: 'openai',
    region: 'europe-west4',
    project: 'my-project',
    upstream: endpoint,
  }
  assert.deepEqual(route, {
    ...rendered,
    fallbacks: [{ provider: 'bedrock', mode: 'openai', region: 'eu-central-1', upstream: runtime }, rendered],
    agent: 'team/a',
  })
})

test('an agent whose jurisdiction contradicts the region of its model or of a fallback has no route', () => {
  // Shows D2.model.region, D2.fallback.region
  const endpoint = 'https://llm.example.com/v1'
  const bedrock = { endpoint, adapter: 'bedrock', region: 'us-east-1', jurisdiction: 'DE' } as const
  assert.equal(routeOf(bedrock), undefined)
  assert.equal(routeOf({ endpoint, fallbacks: [bedrock] }), undefined)
  assert.notEqual(routeOf({ ...bedrock, jurisdiction: 'US' }), undefined)
})

test('every adapter is rendered with its modes, for a fallback as well', () => {
  // Shows D2.model.adapter.bedrock, D2.model.adapter.oci-genai.
  // Shows D2.model.adapter.vertex, D2.model.adapter.gemini, D2.model.adapterMode.bedrock, D2.model.adapterMode.vertex, D2.model.adapterMode.anthropic
  const endpoint = 'https://llm.googleapis.com'
  const place = { region: 'europe-west4', project: 'my-project' }
  const adapters = [
    { adapter: 'bedrock' },
    { adapter: 'bedrock', adapterMode: 'converse', region: 'eu-central-1' },
    { adapter: 'vertex', ...place },
    { adapter: 'vertex', adapterMode: 'native', ...place },
    { adapter: 'gemini' },
    { adapter: 'oci-genai', region: 'eu-frankfurt-1' },
    { adapter: 'anthropic', adapterMode: 'vertex', ...place },
    { adapter: 'anthropic', adapterMode: 'bedrock', region: 'eu-central-1' },
  ] as const
  for (const { adapter, adapterMode: mode, ...more } of adapters.map((one) => ({ adapterMode: undefined, ...one }))) {
    const options = { adapter, ...(mode !== undefined && { adapterMode: mode }), ...more }
    const rendered = { upstream: `${endpoint}/v1`, provider: adapter, ...(mode !== undefined && { mode }), ...more }
    const route = routeOf({ endpoint, ...options, fallbacks: [{ endpoint, ...options }] })
    assert.deepEqual(route, { ...rendered, fallbacks: [rendered], agent: 'team/a' })
  }
})

test('each fallback is rendered in order with its own key, and the name of the model where it says none', () => {
  // Shows D2.fallback.endpoint, D2.fallback.name, D2.fallback.name.default, D2.fallback.apiKeySecretRef, D2.model.apiKeySecretRef.notInherited,
  // D2.model.fallbacks
  const route = routeOf({
    name: 'large-1',
    endpoint: 'https://llm.example',
    apiKeySecretRef: { name: 'llm', key: 'api.key' },
    fallbacks: [
      { endpoint: 'https://other.example' },
      {
        endpoint: 'https://third.example/v1/chat/completions',
        name: 'own',
        apiKeySecretRef: { name: 'third', key: 'k' },
      },
    ],
  })
  assert.deepEqual(route, {
    upstream: 'https://llm.example/v1',
    model: 'large-1',
    apiKeyFile: '/secrets/team/llm/api.key',
    fallbacks: [
      { upstream: 'https://other.example/v1', model: 'large-1' },
      { upstream: 'https://third.example/v1', model: 'own', apiKeyFile: '/secrets/team/third/k' },
    ],
    agent: 'team/a',
  })
})

test('weights, balancing, retries, cache and context window are rendered as the agent states them', () => {
  // Shows D2.model.weight, D2.model.balancing, D2.model.retries, D2.model.cache, D2.model.contextTokens, D2.fallback.weight
  const retries = { attempts: 2, budgetPercent: 10, maxWaitSeconds: 5 }
  const route = routeOf({
    endpoint: 'https://llm.example',
    weight: 3,
    balancing: 'latency',
    retries,
    cache: { ttlSeconds: 60 },
    contextTokens: 400_000,
    fallbacks: [{ endpoint: 'https://other.example', weight: 0 }],
  })
  assert.deepEqual(route, {
    upstream: 'https://llm.example/v1',
    weight: 3,
    balancing: 'latency',
    retries,
    cache: { ttlSeconds: 60 },
    contextTokens: 400_000,
    fallbacks: [{ upstream: 'https://other.example/v1', weight: 0 }],
    agent: 'team/a',
  })
})

test('provider-hosted tools are capped by those of the TrustTier; a word there stands for every version', () => {
  // Shows D2.model.providerTools.cappedByTier.
  const tiersOf = (spec: object) => {
    const tier = { apiVersion: 'plat.dev/v1alpha1', kind: 'TrustTier', metadata: { name: 'tier-0' }, spec }
    const { object, problems } = parseResource('TrustTier', JSON.stringify(tier))
    return [object ?? assert.fail(problems.join('\n'))]
  }
  const providerTools = ['web_search_20250305', 'code_execution', 'web_fetch']
  const agents = [agentWith({ endpoint: 'https://llm.example', providerTools })]
  const toolsWith = (tiers: Manifest<'TrustTier'>[]) =>
    renderModels({ ...nothingDeclared, agents, tiers }, () => '').file.models['team.a']?.providerTools
  assert.deepEqual(toolsWith([]), providerTools)
  assert.deepEqual(toolsWith(tiersOf({})), providerTools)
  assert.deepEqual(toolsWith(tiersOf({ allowedProviderTools: ['web_search', 'web_fetch_20250910'] })), [
    'web_search_20250305',
  ])
  assert.deepEqual(toolsWith(tiersOf({ allowedProviderTools: [] })), [])
})
