import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openEndOf, optionsOf } from './priced.ts'

test('each option of a request that changes its price is named', () => {
  const cached = { type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }
  const cases: readonly (readonly [object, readonly string[]])[] = [
    [{ service_tier: 'auto', speed: 'standard', inference_geo: null }, []],
    [{ service_tier: 'priority' }, ['service_tier=priority']],
    [{ service_tier: ['priority'] }, ['service_tier=object']],
    [{ speed: 'fast', inference_geo: 'us' }, ['speed=fast', 'inference_geo=us']],
    [{ system: [cached] }, ['cache_control.ttl=1h']],
    [{ messages: [{ content: [{ type: 'tool_result', content: [cached] }] }] }, ['cache_control.ttl=1h']],
    [{ tools: [{ name: 'a', cache_control: { ttl: '1h' } }] }, ['cache_control.ttl=1h']],
    [{ cache_control: { ttl: '24h' } }, ['cache_control.ttl=1h']],
    [{ messages: [{ content: [{ ...cached, cache_control: { ttl: '5m' } }] }] }, []],
  ]
  for (const [value, options] of cases) assert.deepEqual(optionsOf({ ...value }), options, JSON.stringify(value))
})

test('tools at the provider, sound and images are not bounded by the bytes of a request', () => {
  const open = [
    { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
    { tools: [{ type: 'function' }, { type: 'code_interpreter' }] },
    { tools: [{ type: 'image_generation' }] },
    { tools: ['x'] },
    { web_search_options: {} },
    { search_parameters: { mode: 'auto' } },
    { enable_search: true },
    { plugins: [{ id: 'web' }] },
    { data_sources: [{ type: 'azure_search' }] },
    { modalities: ['text', 'audio'] },
    { container: 'c' },
    { input: [{ type: 'additional_tools', tools: [{ type: 'web_search' }] }] },
  ]
  for (const value of open) assert.notEqual(openEndOf(value), null, JSON.stringify(value))
  const bounded = [
    { tools: [{ type: 'function' }, { type: 'custom' }, { name: 'a', input_schema: {} }, { type: 'bash_20250124' }] },
    { tools: [{ type: 'namespace', tools: [{ type: 'function' }] }] },
    { modalities: ['text'] },
    { search_parameters: { mode: 'off' }, enable_search: false, plugins: [], data_sources: [] },
    {},
  ]
  for (const value of bounded) assert.equal(openEndOf(value), null, JSON.stringify(value))
})

test('what is not bounded is named as the request names it', () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ tools: [{ type: 'function' }, { type: 'code_interpreter' }] }, 'code_interpreter'],
    [{ tools: [{ functionDeclarations: [], googleSearch: {} }] }, 'googleSearch'],
    [{ web_search_options: {} }, 'web_search'],
    [{ modalities: ['text', 'audio'] }, 'modalities'],
    [{ tools: ['x'] }, 'tools'],
  ]
  for (const [value, name] of cases) assert.equal(openEndOf({ ...value }), name)
})
