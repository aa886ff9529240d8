import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { TEST_ISSUER, testIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { testTenants } from '@plat/testkit/tokens/tenants'
import { signJws } from '@plat/tokens'

const ADMIN_TOKEN = 'an-admin-token-of-this-test'
const { claims } = testIssuer()

async function setUp(t: TestContext) {
  const tenants = testTenants({ red: ['default'], blue: ['blue-1'] })
  const keys = path.join(tempFolder(), 'keys.json')
  writeFileSync(keys, JSON.stringify(tenants.document))
  const upstream = await startScriptedUpstream()
  upstream.answers((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'done' }] } }))
  })
  const gateway = await startGatewayProcess({
    servers: { notes: upstream.url },
    config: { identity: { publicKeyFiles: [keys], issuer: TEST_ISSUER } },
    env: { PLAT_ADMIN_TOKEN: ADMIN_TOKEN },
  })
  t.after(() => Promise.all([gateway.close(), upstream.close()]))
  return { gateway, tenants }
}

async function call({ url }: GatewayProcess, token: string): Promise<Response> {
  return fetch(`${url}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'look', arguments: {} } }),
  })
}

test('a tenant key is valid only for its namespaces, and calls of a revoked tenant are refused', async (t) => {
  const { gateway, tenants } = await setUp(t)
  const signed = (name: string) => signJws(tenants.signers[name] ?? assert.fail(), {}, claims())
  const own = signed('red')
  assert.match(await (await call(gateway, own)).text(), /done/)
  for (const other of ['blue', '']) {
    const refused = await call(gateway, signed(other))
    assert.equal(refused.status, 401, other)
    assert.match(refused.headers.get('www-authenticate') ?? '', /error="invalid_token"/)
  }
  await revokeAt(gateway, { tenant: 'blue' })
  assert.match(await (await call(gateway, own)).text(), /done/)
  await revokeAt(gateway, { tenant: 'red' })
  assert.match(await (await call(gateway, own)).text(), /the tenant is revoked/)
})

test('revoking an agent or a session ends its delegations and forks, also with tokens issued since', async (t) => {
  const { gateway, tenants } = await setUp(t)
  const spiffe = (agent: string, session: string) => `spiffe://plat.local/ns/default/agent/${agent}/session/${session}`
  const signed = (more: object) => signJws(tenants.signers.red ?? assert.fail(), {}, claims({ ...more }))
  const delegated = signed({
    act: { sub: spiffe('planner', 'p1'), act: { sub: 'user:ada' } },
    plat_delegator_jti: 'a-token-that-was-refreshed-since',
  })
  const fork = signed({ plat_parent_session: 's0', plat_lineage: [spiffe('assistant', 's0'), spiffe('first', 'f1')] })
  const own = signed({})
  for (const token of [delegated, fork, own]) assert.match(await (await call(gateway, token)).text(), /done/)
  await revokeAt(gateway, { agent: 'default/planner' })
  assert.match(await (await call(gateway, delegated)).text(), /the agent is revoked/)
  assert.match(await (await call(gateway, fork)).text(), /done/)
  await revokeAt(gateway, { session: 'default/first/f1' })
  assert.match(await (await call(gateway, fork)).text(), /the session is revoked/)
  assert.match(await (await call(gateway, own)).text(), /done/)
})

test('a session whose names are as long as a token can state is listed with its timeline, and can be revoked', async (t) => {
  const { gateway, tenants } = await setUp(t)
  const [agent, session] = [`Agent_${'a'.repeat(300)}`, `.Run_${'b'.repeat(1_000)}`]
  const sub = `spiffe://plat.local/ns/default/agent/${agent}/session/${session}`
  const names = { sub, plat_agent: agent, plat_session: session }
  const token = signJws(tenants.signers.red ?? assert.fail(), {}, claims(names))
  await (await call(gateway, token)).text()
  const id = `default/${agent}/${session}`
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  const timeline = await fetch(`${gateway.url}/v1/sessions/${encodeURIComponent(id)}/timeline`, { headers })
  assert.equal(timeline.status, 200)
  assert.ok(JSON.parse(await timeline.text()).items.length > 0)
  for (const target of [{ session: id }, { agent: `default/${agent}` }]) {
    await revokeAt(gateway, target)
    assert.match(await (await call(gateway, token)).text(), /is revoked/)
  }
})

test('a user of another issuer with the same name is not revoked, and a plain name is revoked at every issuer', async (t) => {
  const { gateway, tenants } = await setUp(t)
  const of = (user: string) =>
    signJws(tenants.signers.red ?? assert.fail(), {}, claims({ act: { sub: `user:${user}` } }))
  const [ada, bob] = [of('ada'), of('bob')]
  await revokeAt(gateway, { user: 'https://elsewhere.example#ada' })
  assert.match(await (await call(gateway, ada)).text(), /done/)
  await revokeAt(gateway, { user: `${TEST_ISSUER}#ada` })
  assert.match(await (await call(gateway, ada)).text(), /the user is revoked/)
  assert.match(await (await call(gateway, bob)).text(), /done/)
  await revokeAt(gateway, { user: 'bob' })
  assert.match(await (await call(gateway, bob)).text(), /the user is revoked/)
})

async function revokeAt({ url }: GatewayProcess, target: object): Promise<void> {
  const response = await fetch(`${url}/v1/revocations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ target, mode: 'revoke', reason: 'test' }),
  })
  assert.equal(response.status, 201)
}
