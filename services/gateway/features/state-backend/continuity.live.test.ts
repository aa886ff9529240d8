import assert from 'node:assert/strict'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { startPostgres, type TestPostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'

const TOKEN = 'a-token-of-the-test'
const dir = tempFolder()
let postgres: TestPostgres
let upstream: ScriptedUpstream
const gateways: GatewayProcess[] = []

before(async () => {
  postgres = await startPostgres()
  upstream = await startScriptedUpstream()
  upstream.answers(({ body }, response) => {
    const { id } = JSON.parse(body)
    const result = { content: [{ type: 'text', text: 'done' }] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  await writeFile(join(dir, 'dsn'), `${postgres.dsn}\n`)
})

after(async () => {
  for (const gateway of gateways) await gateway.close()
  await upstream?.close()
  await postgres?.close()
})

async function start(auditPath: string): Promise<GatewayProcess> {
  const gateway = await startGatewayProcess({
    servers: { notes: upstream.url },
    env: { PLAT_ADMIN_TOKEN: TOKEN },
    config: {
      auditPath,
      adminAuth: { mode: 'token' },
      stateBackend: { type: 'postgres', dsnFile: join(dir, 'dsn'), leader: { retryMillis: 200 } },
    },
  })
  gateways.push(gateway)
  return gateway
}

async function statusOfCall({ url, token }: GatewayProcess): Promise<number> {
  const response = await fetch(`${url}/mcp/notes`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
      authorization: `Bearer ${token}`,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'free', arguments: {} } }),
  })
  await response.text()
  return response.status
}

async function ready({ url }: GatewayProcess): Promise<string> {
  const response = await fetch(`${url}/readyz`)
  return `${response.status} ${await response.text()}`
}

const adopt = async ({ url }: GatewayProcess) =>
  (await fetch(`${url}/v1/admin/state:adopt`, { method: 'POST', headers: { authorization: `Bearer ${TOKEN}` } })).status

test('when the database becomes an older copy two gateways deny every call until an operator adopts it', async () => {
  const path = join(dir, 'one.jsonl')
  const both = [await start(path), await start(join(dir, 'other.jsonl'))] as const
  const [one, other] = both
  const statuses = () => Promise.all(both.map(statusOfCall))
  const arePassing = async () => (await statuses()).every((status) => status === 200)
  await until(arePassing, 'the first calls')
  await postgres.save()
  await until(arePassing, 'calls after the copy')
  assert.equal(await adopt(one), 409)
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ target: { session: 'default/assistant/gone' } })
  const revoke = async () =>
    (await fetch(`${one.url}/v1/revocations`, { method: 'POST', headers, body })).status === 201
  await until(revoke, 'a revocation that the copy lacks')
  await postgres.restore()
  await until(
    async () => (await Promise.all(both.map(ready))).every((text) => /^503 .*state database/.test(text)),
    'the reason',
  )
  await until(async () => (await statuses()).every((status) => status === 503), 'the refusals')
  for (let times = 0; times < 5; times++) assert.deepEqual(await statuses(), [503, 503])
  assert.equal(await adopt(other), 204)
  await until(arePassing, 'calls after the adoption')
  await until(async () => (await Promise.all(both.map(ready))).every((text) => text.startsWith('200')), 'both gateways')
  const recorded = await readFile(join(dir, 'other.jsonl'), 'utf8')
  assert.match(recorded, /state:adopt/)
})

test('a gateway does not start on a ledger that ends below the head in the database', async () => {
  const path = join(dir, 'cut.jsonl')
  const first = await start(path)
  await until(async () => (await statusOfCall(first)) === 200, 'a call')
  assert.equal(await statusOfCall(first), 200)
  gateways.splice(gateways.indexOf(first), 1)
  await first.close()
  const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1)
  await writeFile(path, `${lines.slice(0, -1).join('\n')}\n`)
  // Who can write the disk can cut the ledger and remove what is beside it.
  await rm(`${path}.head`)
  const last = lines.length - 1
  await assert.rejects(
    start(path),
    new RegExp(
      `cut\\.jsonl ends at record ${last - 1}, but record ${last} was durable \\(its row in "plat"\\.ledger_head`,
    ),
  )
  await writeFile(path, `${lines.join('\n')}\n`)
  assert.equal(await statusOfCall(await start(path)), 200)
})
