import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { generateKeyFiles } from '@plat/keys'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import type { Reached, TestAgent } from '@plat/testkit/a2a-server'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { startTestIdentity, type TestIdentity } from '@plat/testkit/identity'
import { createRemoteJWKSet, decodeJwt, type JWTPayload, jwtVerify } from 'jose'

const TXN_TOKEN = 'urn:ietf:params:oauth:token-type:txn_token'
const JWT = 'urn:ietf:params:oauth:token-type:jwt'

let dir: string
let signingKey: string
let agent: TestAgent
let broker: TestIdentity

before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'plat-'))
  const { keyPath, pubPath } = await generateKeyFiles(dir)
  signingKey = keyPath
  agent = await startTestAgent()
  broker = await startTestIdentity(['-txn-token-keys', pubPath])
  const least = { allowedCallers: [], skills: [], streaming: true, trust: 'trusted', version: '1.0.0' }
  const agents = { 'default/helper': { endpoint: agent.url, ...least } }
  await writeFile(path.join(dir, 'agents.json'), JSON.stringify({ version: 1, agents }))
})
after(async () => {
  await agent.close()
  await broker.stop()
  await rm(dir, { recursive: true, force: true })
})

/** A gateway that accepts the broker's tokens, in front of the agent `default/helper`. */
async function start(mode: string, more: object = {}): Promise<GatewayProcess> {
  const txnTokens = { mode, signingKey, audience: 'plat.local', ...more }
  return startGatewayProcess({
    servers: {},
    config: {
      identity: { jwksURL: `${broker.url}/.well-known/jwks.json` },
      a2a: { routesFile: path.join(dir, 'agents.json') },
      ...(mode !== 'off' && { txnTokens }),
    },
  })
}

interface Minted {
  readonly token: string
  readonly jti: string
}

async function mint(name: string, scopes: readonly string[]): Promise<Minted> {
  const response = await fetch(`${broker.url}/v1/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${broker.brokerToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      namespace: 'default',
      agent: name,
      session: `${name}-1`,
      user: 'ada',
      scopes,
      groups: ['staff'],
    }),
  })
  assert.equal(response.status, 200, await response.clone().text())
  return JSON.parse(await response.text())
}

/** Agent `assistant` sends a message to agent `helper`. Returns the request that `helper` received. */
async function call(gateway: GatewayProcess, { token }: Minted): Promise<Reached> {
  const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
  const response = await fetch(`${gateway.url}/a2a/default/helper`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
      // Set by the gateway only.
      'txn-token': 'forged',
      'x-plat-user': 'root',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
  })
  assert.equal(response.status, 200, await response.clone().text())
  const reached = agent.reached.at(-1)
  assert.ok(reached !== undefined, await response.text())
  return reached
}

/** Verifies as the called agent does: with the published keys of the gateway and an independent library. */
async function checked(gateway: GatewayProcess, { headers }: Reached): Promise<JWTPayload> {
  const keys = createRemoteJWKSet(new URL(`${gateway.url}/.well-known/txn-token-jwks.json`))
  const { payload } = await jwtVerify(String(headers['txn-token']), keys, {
    algorithms: ['EdDSA'],
    typ: 'txntoken+jwt',
    audience: 'plat.local',
    issuer: 'plat-gateway',
  })
  return payload
}

function plain({ headers }: Reached): string[] {
  return Object.keys(headers).filter((name) => name.startsWith('x-plat-'))
}

async function delegate(subject: string, actor: string): Promise<{ status: number; text: string }> {
  const form = { subject_token: subject, subject_token_type: TXN_TOKEN, actor_token: actor, actor_token_type: JWT }
  const grant_type = 'urn:ietf:params:oauth:grant-type:token-exchange'
  const body = new URLSearchParams({ grant_type, ...form })
  const response = await fetch(`${broker.url}/v1/exchange`, { method: 'POST', body })
  return { status: response.status, text: await response.text() }
}

test('mode add: the called agent verifies its caller, and acts for it with a token exchanged at the broker', async (t) => {
  // Shows D3.txnTokens.mode.add.
  const gateway = await start('add', { ttlSeconds: 120 })
  t.after(() => gateway.close())
  const caller = await mint('assistant', ['agents:helper'])
  const reached = await call(gateway, caller)
  const claims = await checked(gateway, reached)
  const { iat = 0, exp = 0 } = claims
  assert.equal(exp - iat, 120)
  assert.deepEqual(
    [claims.sub, claims.scope, claims.req_wl, claims.act, claims.plat_groups],
    [
      'spiffe://plat.local/ns/default/agent/assistant/session/assistant-1',
      'agents:default/helper',
      'spiffe://plat.local/plat/gateway',
      { sub: 'user:ada' },
      'staff',
    ],
  )
  const call1 = reached.headers['x-plat-decision-id']
  assert.deepEqual(claims.tctx, { jti: caller.jti, target: 'default/helper', call: call1 })
  assert.deepEqual(
    [reached.headers['x-plat-agent'], reached.headers['x-plat-user'], reached.headers.authorization],
    ['assistant', 'ada', undefined],
  )
  const helper = await mint('helper', ['tools:notes'])
  const delegated = await delegate(String(reached.headers['txn-token']), helper.token)
  assert.equal(delegated.status, 200, delegated.text)
  const delegatedClaims = decodeJwt(JSON.parse(delegated.text).access_token)
  assert.deepEqual(delegatedClaims.act, { sub: claims.sub, act: { sub: 'user:ada' } })
  assert.deepEqual(delegatedClaims.plat_delegation_jtis, [caller.jti, helper.jti])
  // Each call is a separate transaction; the broker accepts each once.
  const again = await call(gateway, caller)
  assert.notEqual((await checked(gateway, again)).txn, claims.txn)
  assert.equal((await delegate(String(again.headers['txn-token']), helper.token)).status, 200)
  const records = (await gateway.ledger()).join('\n')
  assert.ok(records.includes(String(claims.txn)))
  assert.ok(!records.includes(String(reached.headers['txn-token'])))
})

test('a transaction token is refused by the gateway, and by the broker for another agent', async (t) => {
  const gateway = await start('add')
  t.after(() => gateway.close())
  const reached = await call(gateway, await mint('assistant', ['agents:helper']))
  const token = String(reached.headers['txn-token'])
  const response = await fetch(`${gateway.url}/a2a/default/helper`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}',
  })
  assert.equal(response.status, 401)
  const other = await mint('other', ['tools:notes'])
  const refused = await delegate(token, other.token)
  assert.deepEqual([refused.status, JSON.parse(refused.text).error], [400, 'invalid_target'])
})

test('mode replace: the token replaces the plain headers and has all of their content', async (t) => {
  // Shows D3.txnTokens.mode.replace.
  const gateway = await start('replace')
  t.after(() => gateway.close())
  const reached = await call(gateway, await mint('assistant', ['agents:helper']))
  assert.deepEqual(plain(reached), [])
  const { sub, act } = await checked(gateway, reached)
  assert.match(String(sub), /\/agent\/assistant\//)
  assert.deepEqual(act, { sub: 'user:ada' })
})

test('mode off: the agent gets only the plain headers, and no key is published', async (t) => {
  const gateway = await start('off')
  t.after(() => gateway.close())
  const reached = await call(gateway, await mint('assistant', ['agents:helper']))
  assert.equal(reached.headers['txn-token'], undefined)
  assert.equal(reached.headers['x-plat-agent'], 'assistant')
  assert.equal((await fetch(`${gateway.url}/.well-known/txn-token-jwks.json`)).status, 404)
})
