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
