import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import OpenAI from 'openai'

let upstream: ModelServer
let gateway: GatewayProcess

before(async () => {
  upstream = await startModelServer()
  gateway = await startGatewayProcess({
    servers: {},
    denied: ['large-*'],
    scopes: ['models:open', 'models:big'],
    config: {
      modelPolicy: 'policy',
      models: { open: { upstream: upstream.url }, big: { upstream: upstream.url, model: 'large-1' } },
    },
  })
})

after(async () => {
  await gateway.close()
  await upstream.close()
})

function ask(route: string, model: string) {
  const client = new OpenAI({ baseURL: `${gateway.url}/llm/${route}/v1`, apiKey: gateway.token, maxRetries: 0 })
  return client.chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }] })
}

const denied = { status: 403, code: 'policy_denied', type: 'permission_error' }

test('policies for model calls match the model that is requested from the provider', async () => {
  // Shows D3.policy.modelPolicy, D3.rule.modelPolicy
  assert.equal((await ask('open', 'small-1')).choices[0]?.message.content, 'Hello world.')
  await assert.rejects(ask('open', 'large-1'), denied)
  await assert.rejects(ask('big', 'small-1'), denied)
  assert.equal(upstream.calls.length, 1)
})

test('a model that is denied is not reached by another spelling of its name, another member, or the address', async () => {
  const before = upstream.calls.length
  const send = async (body: string, { query = '', type = 'application/json' } = {}) => {
    const headers = { authorization: `Bearer ${gateway.token}`, 'content-type': type }
    const at = `${gateway.url}/llm/open/v1/chat/completions${query}`
    return (await fetch(at, { method: 'POST', headers, body })).status
  }
  const chat = (model: string) => JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] })
  for (const model of [' large-1', 'large-1\n', 'large-1\u00a0', '\u200blarge-1', '\uff4carge-1', 'large\u2010-1', ''])
    assert.equal(await send(chat(model)), 400, JSON.stringify(model))
  assert.equal(await send(chat('small-1').replace('{', '{"model":"large-1",')), 400)
  assert.equal(await send(chat('large-1').replace('model', 'mod\\u0065l')), 403)
  assert.equal(await send(chat('small-1'), { type: 'application/x-www-form-urlencoded' }), 415)
  assert.equal(upstream.calls.length, before)
  assert.equal(await send(chat('small-1'), { query: '?model=large-1&deployment=large-1' }), 200)
  assert.deepEqual([upstream.calls.at(-1)?.path, upstream.calls.length], ['/v1/chat/completions', before + 1])
})

test('the series of the contract count routes, calls and tokens', async () => {
  // Shows D3.metric.plat_gateway_model_routes, D3.metric.plat_gateway_model_requests_total
  // and D3.metric.plat_gateway_model_tokens_total.
  await ask('open', 'small-1')
  await assert.rejects(ask('open', 'large-1'), denied)
  const text = await (await fetch(`${gateway.url}/metrics`)).text()
  assert.match(text, /^plat_gateway_model_routes 2$/m)
  assert.match(text, /^plat_gateway_model_requests_total\{route="open",status="200"\} [1-9]/m)
  assert.match(text, /^plat_gateway_model_requests_total\{route="open",status="403"\} [1-9]/m)
  assert.match(text, /^plat_gateway_model_tokens_total\{route="open",kind="completion"\} (?:3|6|9)$/m)
  assert.match(text, /^plat_gateway_requests_total\{server="llm\/open",method="chat\/completions",code="200"\} [1-9]/m)
})
