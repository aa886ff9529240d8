import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { closed, listening } from '@plat/testkit/local'
import { started } from '../../../testing/started.ts'

const json = { 'content-type': 'application/json' }

test('providers with the same address have separate paths and circuits', async (t) => {
  const paths: string[] = []
  const message = { type: 'message', content: [{ type: 'text', text: 'hi' }], stop_reason: 'end_turn' }
  const server = createServer((request, response) => {
    paths.push(request.url ?? '')
    const [status, body] = request.url === '/v1/messages' ? [200, message] : [500, {}]
    request.resume().once('end', () => response.writeHead(status, json).end(JSON.stringify(body)))
  })
  const upstream = `http://127.0.0.1:${await listening(server)}/v1`
  t.after(() => closed(server))
  const models = { r: { upstream, fallbacks: [{ upstream, provider: 'anthropic' }] } }
  const { gateway, issuer } = await started(t, { models, modelRouting: { failureThreshold: 1 } })
  const headers = { ...json, authorization: `Bearer ${issuer.token({ scope: 'models:r' })}` }
  const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] })
  for (const _ of [1, 2]) {
    const response = await fetch(`${gateway.url}/llm/r/v1/chat/completions`, { method: 'POST', headers, body })
    assert.equal(response.status, 200)
  }
  assert.deepEqual(paths, ['/v1/chat/completions', '/v1/messages', '/v1/messages'])
})
