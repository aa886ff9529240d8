import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelRouteEntry } from '@plat/resources/rendered'
import { decodeModels } from './decode.ts'
import { buildRoutes } from './registry.ts'

test('clouds have a base URL per region', () => {
  // Shows D3.route.region, D3.route.project
  const clouds = { awsRegion: 'eu-north-1', awsSuffix: '' }
  const upstreamOf = (entry: Partial<ModelRouteEntry>) =>
    buildRoutes(null, { r: { upstream: '', mode: 'openai', ...entry } }, clouds).route('r')?.endpoints[0].upstream
  const bedrock = 'https://bedrock-runtime.eu-north-1.amazonaws.com/openai/v1'
  assert.equal(upstreamOf({ provider: 'bedrock' }), bedrock)
  assert.equal(upstreamOf({ provider: 'bedrock', region: 'us-east-1' }), bedrock.replace('eu-north-1', 'us-east-1'))
  const place = (region: string) => `v1/projects/p/locations/${region}/endpoints/openapi`
  const vertex = (region: string) => upstreamOf({ provider: 'vertex', region, project: 'p' })
  assert.equal(vertex('europe-west4'), `https://europe-west4-aiplatform.googleapis.com/${place('europe-west4')}`)
  assert.equal(vertex('global'), `https://aiplatform.googleapis.com/${place('global')}`)
})

test('for a provider with a default path a host is enough, as in an Agent, and other paths stay', () => {
  const clouds = { awsRegion: 'eu-north-1', awsSuffix: 'aws.example' }
  const upstreamOf = (entry: ModelRouteEntry) =>
    buildRoutes(null, { r: entry }, clouds).route('r')?.endpoints[0].upstream
  const place = { region: 'us-east5', project: 'p' }
  const inPlace = '/v1/projects/p/locations/us-east5/publishers'
  const cases: readonly (readonly [Omit<ModelRouteEntry, 'upstream'>, usual: string, path: string])[] = [
    [{ provider: 'bedrock' }, 'https://bedrock-runtime.eu-north-1.aws.example', ''],
    [{ provider: 'bedrock', mode: 'openai' }, 'https://bedrock-runtime.eu-north-1.aws.example/openai/v1', '/openai/v1'],
    [{ provider: 'anthropic', mode: 'bedrock' }, 'https://bedrock-runtime.eu-north-1.aws.example', ''],
    [
      { provider: 'vertex', ...place },
      `https://us-east5-aiplatform.googleapis.com${inPlace}/google`,
      `${inPlace}/google`,
    ],
    [
      { provider: 'anthropic', mode: 'vertex', ...place },
      `https://us-east5-aiplatform.googleapis.com${inPlace}/anthropic`,
      `${inPlace}/anthropic`,
    ],
    [{ provider: 'gemini' }, 'https://generativelanguage.googleapis.com/v1beta', '/v1beta'],
    [{ provider: 'anthropic' }, 'https://api.anthropic.com/v1', '/v1'],
    [
      { provider: 'oci-genai', region: 'eu-frankfurt-1' },
      'https://inference.generativeai.eu-frankfurt-1.oci.oraclecloud.com/openai/v1',
      '/openai/v1',
    ],
  ]
  for (const [entry, usual, path] of cases) {
    assert.equal(upstreamOf({ ...entry, upstream: '' }), usual)
    for (const bare of ['https://own.example', 'https://own.example/', 'https://own.example/v1'])
      assert.equal(upstreamOf({ ...entry, upstream: bare }), `https://own.example${path}`)
    assert.equal(upstreamOf({ ...entry, upstream: 'https://own.example/proxy/x/' }), 'https://own.example/proxy/x')
  }
})

test('a modelsFile whose jurisdiction contradicts the region is refused, and Azure accepts a region', () => {
  // Shows D3.route.region
  const decoded = (entry: object) => {
    const models = { 'team.a': { upstream: 'https://llm.example', apiKeyFile: '/key', ...entry } }
    const file = decodeModels(Buffer.from(JSON.stringify({ version: 1, models })))
    return file.ok ? [] : file.problems
  }
  const problem =
    'jurisdiction: is DE, but by region and model requests are processed in US: correct it or leave it out'
  const bedrock = { provider: 'bedrock', region: 'us-east-1', jurisdiction: 'DE' }
  assert.deepEqual(decoded(bedrock), [`models[team.a].${problem}`])
  assert.deepEqual(decoded({ fallbacks: [{ upstream: 'https://b.example', ...bedrock, apiKeyFile: '/key' }] }), [
    `models[team.a].fallbacks[0].${problem}`,
  ])
  assert.deepEqual(decoded({ provider: 'azure-openai', region: 'westeurope', jurisdiction: 'EU' }), [])
  assert.equal(decoded({ provider: 'azure-openai', region: 'global', jurisdiction: 'EU' }).length, 1)
})
