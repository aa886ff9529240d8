import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelRouteEntry } from '@plat/resources/rendered'
import { Snapshots, searchesByItself } from '../../call/index.ts'
import { testCall } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { bringsForeignContent, hostedTool } from './hosted-tools.ts'
import { buildRoutes } from './registry.ts'
import { createModelResolve, routesSlot } from './stage.ts'
import { noOwners } from './stored/testing.ts'

test('a request that refers to content at the provider may return foreign content', () => {
  const state = [
    { previous_response_id: 'resp_1' },
    { conversation: 'conv_1' },
    { conversation: { id: 'conv_1' } },
    { prompt: { id: 'pmpt_1' } },
    { input: [{ type: 'item_reference', id: 'msg_1' }] },
    { input: [{ id: 'msg_1' }] },
    { container: 'cntr_1' },
  ]
  for (const body of state) assert.equal(bringsForeignContent(body, 'responses'), true, JSON.stringify(body))
  const own = [
    {},
    { previous_response_id: null, conversation: null, prompt: null, container: null },
    { input: 'hello', store: true },
    { input: [{ role: 'user', content: 'hello' }] },
    { input: [{ type: 'function_call_output', call_id: 'c', output: 'a' }] },
  ]
  for (const body of own) assert.equal(bringsForeignContent(body, 'responses'), false, JSON.stringify(body))
  assert.equal(bringsForeignContent({ container: 'c' }, 'messages'), true)
  const thread = { type: 'continue', previous_message_id: 'msg_1' }
  assert.equal(bringsForeignContent({ thread }, 'messages'), true)
  assert.equal(bringsForeignContent({ thread: { type: 'create' } }, 'messages'), false)
  assert.equal(bringsForeignContent({ previous_response_id: 'x' }, 'chat/completions'), false)
})

test('models that search by themselves are recognized by name', () => {
  for (const name of [
    'gpt-4o-search-preview',
    'gpt-4o-mini-search-preview-2025-03-11',
    'openai/gpt-5-search-api',
    'o3-deep-research',
    'o4-mini-deep-research-2025-06-26',
    'sonar',
    'perplexity/sonar-pro',
    'openai/gpt-4o:online',
    'groq/compound-mini',
    'compound-beta',
  ])
    assert.equal(searchesByItself(name), true, name)
  for (const name of ['gpt-4o', 'sonarqube', 'my-search-previewer', 'compoundx', 'gpt-4o:onlinex', null])
    assert.equal(searchesByItself(name), false, String(name))
})

test('a searching model chosen by the caller counts as a provider-hosted tool, and returns foreign content', async () => {
  const name = 'gpt-4o-search-preview'
  const fixed: ModelRouteEntry = { upstream: 'http://static.example/v1' }
  const snapshots = new Snapshots()
  const routes: Readonly<Record<string, ModelRouteEntry>> = {
    open: fixed,
    listed: { ...fixed, providerTools: ['web_search'] },
    alias: { ...fixed, aliases: { quick: name } },
    spare: { ...fixed, fallbacks: [{ upstream: 'http://static.example/v1', model: name }] },
    fixed: { ...fixed, model: name },
  }
  snapshots.publish(routesSlot, buildRoutes(null, routes))
  const stage = createModelResolve({
    snapshots,
    isReady: () => true,
    settled() {},
    choice: { allows: () => true },
    labelsOf: () => [],
    owners: noOwners,
  })
  const taintsOf = async (server: string, tools: string) => {
    const identity = { ...testIdentity, scopes: new Set([`models:${server}`]) }
    const body = { bytes: Buffer.from('{}'), value: {}, args: null }
    const own = { operation: 'model.generate', method: 'chat/completions', server, name: tools, body } as const
    const verdict = await stage.admit(testCall({ identity }, { ...own, snapshot: snapshots.current }))
    if (typeof verdict === 'symbol') assert.fail('no target')
    return 'target' in verdict
      ? verdict.target.labels.taints
      : 'code' in verdict
        ? verdict.code
        : assert.fail('no target')
  }
  assert.equal(await taintsOf('open', name), 'provider_hosted_tool')
  assert.deepEqual(await taintsOf('open', 'm'), [])
  for (const [server, tools] of [
    ['listed', name],
    ['alias', 'quick'],
    ['spare', 'm'],
    ['fixed', 'm'],
    ['fixed', name],
  ] as const)
    assert.deepEqual(await taintsOf(server, tools), ['untrusted-input'], server)
})

test('switches of other providers count as provider-hosted tools, too', () => {
  const tool = (body: object, ...allowed: readonly string[]) => hostedTool(body, new Set(allowed), 'chat/completions')
  const switches = [
    [{ search_parameters: { mode: 'auto' } }, 'web_search'],
    [{ enable_search: true }, 'web_search'],
    [{ plugins: [{ id: 'web' }] }, 'web_search'],
    [{ data_sources: [{ type: 'azure_search' }] }, 'file_search'],
  ] as const
  for (const [body, word] of switches) {
    assert.equal(tool(body), word)
    assert.equal(tool(body, word), null)
    assert.equal(bringsForeignContent(body, 'chat/completions'), true)
  }
  for (const body of [
    { search_parameters: { mode: 'off' } },
    { enable_search: false },
    { plugins: [] },
    { plugins: null },
  ])
    assert.equal(tool(body), null)
})

test('tools that the conversation adds are judged like those of the request', () => {
  const none = new Set<string>()
  const search = { type: 'web_search' }
  const connection = { type: 'mcp', server_url: 'https://mcp.example.com' }
  const own = { type: 'function', name: 'f', parameters: {} }
  const namespace = (...tools: readonly object[]) => ({ type: 'namespace', name: 'n', description: '', tools })
  const inInput = (...tools: readonly object[]) => ({ input: [{ type: 'additional_tools', role: 'developer', tools }] })
  const found = (...tools: readonly object[]) => ({ input: [{ type: 'tool_search_output', call_id: 'c', tools }] })
  for (const within of [inInput, found, (...tools: readonly object[]) => ({ tools })]) {
    assert.equal(hostedTool(within(own, search), none, 'responses'), 'web_search')
    assert.equal(hostedTool(within(namespace(own, search)), none, 'responses'), 'web_search')
    assert.equal(hostedTool(within(own, namespace(own)), none, 'responses'), null)
    assert.equal(hostedTool(within(namespace(namespace(own))), none, 'responses'), 'namespace')
    assert.equal(hostedTool(within(search), new Set(['web_search']), 'responses'), null)
    assert.equal(hostedTool(within(connection), new Set(['mcp']), 'responses'), 'mcp')
  }
  const definition = (tool: object) => ({ type: 'tool_addition', tool: { type: 'tool_definition', definition: tool } })
  const message = (...content: readonly object[]) => ({ messages: [{ role: 'system', content }] })
  const anthropic = (body: object) => hostedTool(body, new Set(['mcp_toolset']), 'messages')
  assert.equal(anthropic(message(definition({ type: 'web_search_20250305', name: 'w' }))), 'web_search_20250305')
  assert.equal(anthropic(message(definition({ name: 'own', input_schema: {} }))), null)
  assert.equal(anthropic(message(definition({ type: 'mcp_toolset', mcp_server_name: 's' }))), 'mcp_toolset')
  assert.equal(
    anthropic(message({ type: 'tool_addition', tool: { type: 'mcp_toolset_reference' } })),
    'mcp_toolset_reference',
  )
  assert.equal(anthropic(message({ type: 'tool_addition', tool: { type: 'tool_reference', tool_name: 'own' } })), null)
  const compacted = { type: 'compaction', tool_changes: [definition({ type: 'code_execution_20250825' })] }
  assert.equal(anthropic(message(compacted)), 'code_execution_20250825')
})
