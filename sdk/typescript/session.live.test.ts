import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, test } from 'node:test'
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { messageOf } from '@plat/testkit/a2a-agent'
import {
  createTokenVerifier,
  createTransactionVerifier,
  deniedBy,
  IdentityRefusedError,
  RevokedError,
  readClaims,
  type Session,
} from './index.ts'
import { type GatewayFixture, PUBLIC, startGround } from './testing/fixture.ts'

let fixture: GatewayFixture

before(async () => {
  fixture = await startGround()
})

after(() => fixture.close())

async function mcp(session: Session): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const { url, ...options } = session.mcp('fixture')
  await client.connect(new StreamableHTTPClientTransport(url, options))
  return client
}

const call = { name: 'test_simple_text', arguments: {} }

test('tokens are renewed while calls run, and none of them fails, of bearer and of bound sessions', async () => {
  const kinds = [false, true].map(async (dpop) => {
    const source = fixture.source({ session: `rotating-${dpop}`, ttlSeconds: 2 })
    const session = await fixture.connect({ dpop, source })
    const client = await mcp(session)
    const tokens = new Set<string>()
    while (tokens.size < 3) {
      await Promise.all([client.callTool(call), client.callTool(call)])
      tokens.add(session.claims?.jti ?? '')
    }
    assert.equal(session.claims?.jkt !== null, dpop)
    await client.close()
  })
  await Promise.all(kinds)
})

test('a session that is bound later proves its key from then on; a second bind of its token is refused', async () => {
  const source = fixture.source({ session: 'late' })
  const issued: string[] = []
  const shared = {
    name: 'one token for two',
    issue: async () => {
      issued.push((await source.issue({ jkt: null, signal: new AbortController().signal })).token)
      return { token: issued[0] ?? assert.fail() }
    },
  }
  const first = await fixture.connect({ source: shared })
  const second = await fixture.connect({ source: shared })
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  await first.bind(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString())
  assert.ok(first.claims?.jkt)
  const client = await mcp(first)
  await client.callTool(call)
  await client.close()
  await assert.rejects(second.bind(), (error) => error instanceof IdentityRefusedError && error.status === 409)
  assert.equal(second.claims?.jkt, null, 'it goes on as it was')
})

test('a token is exchanged for one of another audience, which a server verifies', async (t) => {
  const session = await fixture.connect()
  const { token, scopes, expiresAt } = await session.exchange({ audience: 'reports', ttlSeconds: 60 })
  assert.deepEqual(scopes, ['tools:fixture'])
  assert.equal(readClaims(token).parentJti, session.claims?.jti)
  assert.ok(expiresAt / 1000 >= readClaims(token).expiresAt)
  const trust = { jwksURL: `${fixture.identityURL}/.well-known/jwks.json` }
  const verifier = createTokenVerifier({ trust, audience: 'reports', issuer: 'plat-identity' })
  t.after(() => verifier.close())
  const request = { method: 'POST', url: 'https://reports.example/', headers: { authorization: `Bearer ${token}` } }
  assert.equal((await verifier.verifyRequest(request)).user, 'ada')
  await assert.rejects(session.exchange({ audience: 'elsewhere' }), {
    name: 'IdentityRefusedError',
    code: 'invalid_target',
  })
})

test('a called agent checks who calls, and acts for that user', async (t) => {
  const planner = await fixture.connect()
  const { url, cardPath, fetchImpl } = planner.a2a('default', 'helper')
  const leading: typeof fetch = (input, init) => fetchImpl(String(input).replace(PUBLIC, fixture.gateway.url), init)
  const client = await new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl: leading })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  }).createFromUrl(url, cardPath)
  await client.sendMessage({
    tenant: '',
    message: messageOf('', '', 'hello'),
    configuration: undefined,
    metadata: undefined,
  })
  const receivedToken = fixture.agent.reached.at(-1)?.headers['txn-token']
  assert.ok(typeof receivedToken === 'string')
  const transactions = createTransactionVerifier({
    trust: { jwksURL: `${fixture.gateway.url}/.well-known/txn-token-jwks.json` },
    audience: 'plat.local',
    namespace: 'default',
    agent: 'helper',
  })
  t.after(() => transactions.close())
  const { caller } = await transactions.verify(receivedToken)
  assert.deepEqual([caller.agent, caller.user], ['assistant', 'ada'])
  const helper = await fixture.connect({
    dpop: true,
    source: fixture.source({ agent: 'helper', session: 'h1', user: 'nobody' }),
  })
  const acting = await helper.delegate({ transaction: receivedToken })
  assert.deepEqual([acting.claims?.agent, acting.claims?.user], ['helper', 'ada'])
  assert.deepEqual(acting.claims?.actors, [planner.claims?.subject])
  assert.equal(acting.claims?.jkt, helper.claims?.jkt)
  const tools = await mcp(acting)
  await tools.callTool(call)
  await tools.close()
  await assert.rejects(helper.delegate({ transaction: 'made up' }), {
    name: 'IdentityRefusedError',
    code: 'invalid_grant',
  })
})

test('code runs in the sandbox of the session', async () => {
  const session = await fixture.connect({ source: fixture.source({ session: 'coder' }) })
  assert.deepEqual(await session.exec({ code: '6 * 7' }), { status: 200, result: { ran: '6 * 7' } })
  assert.deepEqual(fixture.ran, ['{"code":"6 * 7"}'])
})

test('a revoked session gets the error from every endpoint', async () => {
  const session = await fixture.connect({ source: fixture.source({ session: 'leaving' }) })
  const client = await mcp(session)
  await client.callTool(call)
  await fixture.admin('/v1/revocations', { target: { session: 'default/assistant/leaving' }, reason: 'lost' })
  const refused = async (work: Promise<unknown>) => {
    const error: unknown = await work.then(
      () => null,
      (thrown: unknown) => thrown,
    )
    const denied = deniedBy(error)
    assert.ok(denied instanceof RevokedError, String(error))
    assert.deepEqual([denied.code, denied.status], ['revoked', 401])
  }
  await refused(client.callTool(call))
  await refused(session.exec({ code: '1' }))
  const { baseURL } = session.openai('small')
  await refused(session.fetch(`${baseURL}/models`))
  await client.close().catch(() => {})
})
