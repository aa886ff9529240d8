import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { callTool } from '@plat/testkit/mcp/call'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { Check, Errors } from 'typebox/schema'

const TOKEN = 'the-admin-token-of-this-test-1234567890'
let upstream: ScriptedUpstream
let gateway: GatewayProcess

before(async () => {
  upstream = await startScriptedUpstream()
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  gateway = await startGatewayProcess({
    servers: { notes: upstream.url },
    config: { sessionBudgetUSD: 1, pinStorePath: join(tempFolder(), 'pins.jsonl') },
    env: { PLAT_ADMIN_TOKEN: TOKEN },
  })
  const { status, text } = await callTool(gateway, 'notes', 'read', {})
  assert.equal(status, 200, text)
  await until(async () => (await gateway.ledger()).some((line) => line.includes('"kind":"outcome"')), 'the record')
})
after(async () => {
  await gateway.close()
  await upstream.close()
})

async function ask(method: string, path: string, body?: string) {
  const headers = {
    authorization: `Bearer ${TOKEN}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  const response = await fetch(`${gateway.url}${path}`, { method, headers, ...(body !== undefined && { body }) })
  return { status: response.status, answer: JSON.parse((await response.text()) || 'null') }
}

test('the document is served without a token, and responses of the gateway match it', async () => {
  const served = await fetch(`${gateway.url}/openapi.json`)
  assert.equal(served.status, 200)
  const document = JSON.parse(await served.text())
  const fits = async (method: 'GET' | 'POST', path: string, body?: object, at = path) => {
    const { status, answer } = await ask(method, path, body && JSON.stringify(body))
    const { responses } = document.paths[at][method.toLowerCase()]
    const schema = responses[String(status)]?.content['application/json'].schema
    assert.ok(schema !== undefined, `${at} answers ${status}: ${JSON.stringify(answer)}`)
    assert.ok(Check(schema, answer), `${at}: ${JSON.stringify(Errors(schema, answer))}`)
    return Object(answer)
  }
  for (const path of [
    '/v1/auth/config',
    '/v1/whoami',
    '/v1/audit/head',
    '/v1/audit/jwks',
    '/v1/posture',
    '/v1/license',
  ])
    await fits('GET', path)
  const revocation = { target: { agent: 'default/other' }, mode: 'revoke', reason: 'a test' }
  await fits('POST', '/v1/revocations', revocation)
  const filled = ['/v1/revocations', '/v1/sessions', '/v1/audit/records']
  for (const path of filled) assert.ok((await fits('GET', path)).items.length > 0, path)
  for (const path of ['/v1/approvals', '/v1/pins', '/v1/budgets', '/v1/audit/checkpoints']) await fits('GET', path)
  const timeline = '/v1/sessions/{id}/timeline'
  assert.ok((await fits('GET', '/v1/sessions/s1/timeline', undefined, timeline)).items.length > 0)
  const policies: object = JSON.parse(policiesFile())
  assert.equal((await fits('POST', '/v1/policies/simulate', { policies })).items.length, 1)
})

test('a refusal is what the document says of every route', async () => {
  const document = JSON.parse(await (await fetch(`${gateway.url}/openapi.json`)).text())
  const { schema } = document.components.responses.Refusal.content['application/json']
  for (const [method, path] of [
    ['GET', '/v1/approvals/none'],
    ['POST', '/v1/revocations'],
    ['GET', '/v1/sessions?limit=0'],
  ] as const) {
    const { status, answer } = await ask(method, path, method === 'POST' ? '{}' : undefined)
    assert.ok(status >= 400 && Check(schema, answer), `${path}: ${JSON.stringify(answer)}`)
  }
})
