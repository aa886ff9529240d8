import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Snapshot } from '../../call/index.ts'
import { testCall, testTarget } from '../../call/testing/call.ts'
import { createDemand } from './demand.ts'
import { bodyOf, endpointAt } from './testing.ts'
import type { ModelEndpoint } from './upstream/endpoint.ts'

function endpoint(forced: string | null): ModelEndpoint {
  return { ...endpointAt('http://model.test/v1'), modelFor: (name) => forced ?? name }
}

function isBounded(model: string, ...forced: readonly [string | null, ...(string | null)[]]): boolean | undefined {
  const body = bodyOf({ model, messages: [] })
  const [first, ...others] = forced
  const route = {
    endpoints: [endpoint(first), ...others.map(endpoint)] as const,
    ...{ maxTokensPerRequest: null, tokensPerMinute: null, contextTokens: null, takesCompletionTokens: () => false },
  }
  const call = testCall({ target: { ...testTarget, kind: 'model', tool: model } }, { body, name: model })
  return createDemand((_: Snapshot) => route)(call)?.bounded
}

test('a call that a searching model may answer has no bound', () => {
  assert.equal(isBounded('gpt-5', null), true)
  assert.equal(isBounded('gpt-4o-search-preview', null), false)
  assert.equal(isBounded('gpt-5', 'sonar-pro'), false)
  assert.equal(isBounded('gpt-5', null, 'sonar-pro'), false)
})

const image = (part: object) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, part, part] }] })
const IMAGE = { type: 'image_url', image_url: { url: 'https://site.example/a.png' } }

/** The bound of the input of a request beyond its bytes; null: none. */
function beyondBytes(value: object, provider: string, { upstream = 'http://model.test/v1', contextTokens = 0 } = {}) {
  const body = bodyOf({ model: 'm', ...value })
  const way = { maxTokensPerRequest: null, tokensPerMinute: null, takesCompletionTokens: () => false }
  const endpoints = [{ ...endpointAt(upstream), provider }] as const
  const route = { ...way, endpoints, contextTokens: contextTokens === 0 ? null : contextTokens }
  const call = testCall({ target: { ...testTarget, kind: 'model', tool: 'm' } }, { body, name: 'm' })
  const demand = createDemand((_: Snapshot) => route)(call)
  return demand?.bounded === true ? demand.inputTokens - body.bytes.byteLength : null
}

test('images are bound by the formulas of their providers, or by a smaller context window', () => {
  const openai = { upstream: 'https://api.openai.com/v1' }
  assert.equal(beyondBytes(image(IMAGE), 'openai', openai), 2 * 48_169)
  assert.equal(beyondBytes(image(IMAGE), 'azure-openai'), 2 * 48_169)
  assert.equal(
    beyondBytes(image({ type: 'image', source: { type: 'url', url: 'https://x.example' } }), 'anthropic'),
    2 * 4_784,
  )
  const bytes = bodyOf({ model: 'm', ...image(IMAGE) }).bytes.byteLength
  assert.equal(beyondBytes(image(IMAGE), 'openai', { ...openai, contextTokens: 50_000 }), 50_000 - bytes)
  for (const provider of ['openai', 'bedrock', 'vertex', 'gemini'])
    assert.equal(beyondBytes(image(IMAGE), provider), null)
  assert.equal(beyondBytes(image({ type: 'file', file: { file_id: 'f' } }), 'openai', openai), null)
  assert.equal(
    beyondBytes(
      { messages: [...image(IMAGE).messages, { role: 'user', content: [{ type: 'input_audio' }] }] },
      'openai',
      openai,
    ),
    null,
  )
})

/** Formulas of OpenAI: tiles of 512 pixels after the image was made to fit, for the model with the most; patches of 32, at most 1,536. */
function openaiTokens(width: number, height: number): number {
  const fits = Math.min(1, 2048 / Math.max(width, height))
  const short = Math.min(1, 768 / (Math.min(width, height) * fits))
  const tiles = Math.ceil((width * fits * short) / 512) * Math.ceil((height * fits * short) / 512)
  const patches = Math.min(1536, Math.ceil(width / 32) * Math.ceil(height / 32))
  return Math.max(2833 + 5667 * tiles, Math.ceil(patches * 2.46))
}

/** Formula of Anthropic, of its models that read the largest images: an edge of at most 2,576 pixels, and 4,784 tokens. */
function anthropicTokens(width: number, height: number): number {
  const fits = Math.min(1, 2576 / Math.max(width, height))
  return Math.min(4784, Math.ceil((width * fits * height * fits) / 750))
}

test('no size of an image has more tokens by a published formula than its bound', () => {
  let most = 0
  for (let width = 1; width < 20_000; width = Math.ceil(width * 1.13)) {
    for (let height = 1; height < 20_000; height = Math.ceil(height * 1.13)) {
      most = Math.max(most, openaiTokens(width, height))
      assert.ok(openaiTokens(width, height) <= 48_169, `${width} x ${height}`)
      assert.ok(anthropicTokens(width, height) <= 4_784, `${width} x ${height}`)
    }
  }
  assert.equal(most, 48_169)
})
