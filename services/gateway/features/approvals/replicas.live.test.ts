import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { TEST_TRUST_DOMAIN, testIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { startPostgres, type TestPostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import { Client } from 'pg'

const ADMIN_TOKEN = 'a-token-of-the-test'
const REPLICAS = 3
const CALLS_PER_REPLICA = 6
const CALLS = REPLICAS * CALLS_PER_REPLICA
/** `npm run long -- -only approvals` sets more. */
const ROUNDS = Number(process.env.PLAT_TEST_APPROVAL_ROUNDS ?? 5)

const issuer = testIssuer()
const rules = [{ name: 'ask', action: 'require_approval', match: { tools: ['wipe'] }, reason: 'a person decides' }]
let postgres: TestPostgres
let database: Client
let upstream: ScriptedUpstream
let gateways: GatewayProcess[] = []
/** Executed calls, by the session that their arguments name. */
const executed = new Map<string, number>()

before(async () => {
  const dir = tempFolder()
  postgres = await startPostgres()
  database = new Client({ connectionString: postgres.dsn })
  await database.connect()
  upstream = await startScriptedUpstream()
  upstream.answers(({ body }, response) => {
    const { id, params } = JSON.parse(body)
    const { round } = params.arguments
    executed.set(round, (executed.get(round) ?? 0) + 1)
    const result = { content: [{ type: 'text', text: 'wiped' }] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  await writeFile(join(dir, 'policies.json'), policiesFile([testPolicy({ rules })]))
  await writeFile(join(dir, 'dsn'), postgres.dsn)
  const start = () =>
    startGatewayProcess({
      servers: { notes: upstream.url },
      issuer,
      env: { PLAT_ADMIN_TOKEN: ADMIN_TOKEN },
      config: {
        policyFile: join(dir, 'policies.json'),
        adminAuth: { mode: 'token', devTokenApprovers: true },
        stateBackend: { type: 'postgres', dsnFile: join(dir, 'dsn'), schema: 'shared', maxConns: 3 },
      },
    })
  // One makes the schema; the others find it.
  const first = await start()
  gateways = [first, ...(await Promise.all(Array.from({ length: REPLICAS - 1 }, start)))]
})

after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()))
  await upstream?.close()
  await database?.end()
  await postgres?.close()
})

async function call(gateway: GatewayProcess, session: string): Promise<string> {
  const sub = `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/assistant/session/${session}`
  const response = await fetch(`${gateway.url}/mcp/notes`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      authorization: `Bearer ${issuer.token({ sub, plat_session: session, scope: 'tools:notes' })}`,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'wipe', arguments: { round: session } },
    }),
  })
  return response.text()
}

interface Listed {
  readonly id: string
  readonly state: string
}

async function approvalsOf({ url }: GatewayProcess, session: string): Promise<readonly Listed[]> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  const response = await fetch(`${url}/v1/approvals?session=${session}`, { headers })
  const { items } = JSON.parse(await response.text())
  return items.map(({ id, state }: Listed) => ({ id, state }))
}

async function approve({ url }: GatewayProcess, id: string): Promise<number> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  return (await fetch(`${url}/v1/approvals/${id}/approve`, { method: 'POST', headers })).status
}

/** Calls that wait for this approval on any replica, besides the one that created it. */
async function attachedTo(id: string): Promise<number> {
  const { rows } = await database.query(
    `SELECT count(*)::integer AS attached FROM shared.entry
       WHERE journal = 'approvals' AND key = $1 AND event LIKE '%"attached"%'`,
    [id],
  )
  return rows[0]?.attached ?? 0
}

async function playRound(session: string, decider: GatewayProcess): Promise<void> {
  const results = gateways.flatMap((gateway) => Array.from({ length: CALLS_PER_REPLICA }, () => call(gateway, session)))
  await until(async () => (await approvalsOf(decider, session)).length > 0, 'the question')
  const [question] = await approvalsOf(decider, session)
  const id = question?.id ?? ''
  await until(async () => (await attachedTo(id)) === CALLS - 1, 'every call to wait for the same approval')
  assert.equal(await approve(decider, id), 200)
  const texts = await Promise.all(results)
  assert.equal(texts.filter((text) => text.includes('wiped')).length, 1)
  assert.equal(texts.filter((text) => text.includes('approval_stale')).length, CALLS - 1)
  assert.equal(executed.get(session), 1)
  for (const gateway of gateways) {
    await until(async () => (await approvalsOf(gateway, session))[0]?.state === 'used', 'the use')
    assert.deepEqual(await approvalsOf(gateway, session), [{ id, state: 'used' }])
  }
}

test(`${CALLS} identical held calls at ${REPLICAS} gateways: one question, one execution for its grant, no hang`, async () => {
  for (let round = 0; round < ROUNDS; round++) {
    await playRound(`round-${round}`, gateways[round % REPLICAS] ?? assert.fail())
  }
})
