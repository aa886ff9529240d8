import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { TEST_TRUST_DOMAIN, testIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import { stateMove } from './move.ts'

const postgres = usePostgres()
const TOKEN = 'a-token-of-the-test'

const rules = [
  {
    name: 'rate',
    action: 'allow',
    match: { tools: ['rated'] },
    rateLimit: { count: 2, seconds: 100_000_000, per: 'session' },
  },
  { name: 'ask', action: 'require_approval', match: { tools: ['delete'] }, reason: 'a person looks first' },
  { name: 'stop', action: 'deny', match: { taints: ['secret'], sinks: ['*'] } },
  { name: 'all', action: 'allow' },
]

/** A gateway on files in one folder, which can be started again on Postgres. */
async function fixture(t: TestContext) {
  await postgres.started
  const dir = tempFolder()
  const at = (name: string) => join(dir, name)
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(({ body }, response) => {
    const answer = { jsonrpc: '2.0', id: JSON.parse(body).id, result: { content: [{ type: 'text', text: 'done' }] } }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  const server = {
    ...{ url: upstream.url, namespaces: [], implicit: false, dataClass: 'internal', auth: { type: 'none' } },
    ...{ trust: 'trusted', toolLabels: { read: { taints: ['secret'] }, send: { sinks: ['mail'] } } },
  }
  await writeFile(
    at('upstreams.json'),
    JSON.stringify({ version: 1, servers: { 'default/notes': server }, bindings: {}, agentWeb: {} }),
  )
  await writeFile(at('policies.json'), policiesFile([testPolicy({ rules })]))
  await writeFile(at('dsn'), `${postgres.dsn}\n`)
  const config = {
    ...{ policyFile: at('policies.json'), upstreamsFile: at('upstreams.json'), auditPath: at('audit.jsonl') },
    ...{ approvalStorePath: at('approvals.jsonl'), taintStorePath: at('taints.jsonl'), pinStorePath: at('pins.jsonl') },
    ...{
      notifyOutboxPath: at('outbox.jsonl'),
      notifiers: [{ name: 'hook', type: 'webhook', url: 'http://127.0.0.1:9' }],
    },
    adminAuth: { mode: 'token', devTokenApprovers: true },
  }
  const issuer = testIssuer()
  const start = (more: object) =>
    startGatewayProcess({ servers: {}, issuer, config: { ...config, ...more }, env: { PLAT_ADMIN_TOKEN: TOKEN } })
  /** Code of the refusal of a call; null: it passed. */
  const call = async ({ url }: GatewayProcess, session: string, tool: string) => {
    const sub = `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/assistant/session/${session}`
    const response = await fetch(`${url}/mcp/notes`, {
      method: 'POST',
      headers: {
        ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        authorization: `Bearer ${issuer.token({ sub, plat_session: session, scope: 'tools:notes' })}`,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: {} } }),
    })
    return denialIn(JSON.parse(await response.text()))?.data.error ?? null
  }
  const admin = async ({ url }: GatewayProcess, method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) }
    const response = await fetch(`${url}/v1${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return JSON.parse(await response.text())
  }
  const config_ = at('gateway.json')
  await writeFile(config_, JSON.stringify({ ...config, identity: { publicKeyFiles: ['pub.pem'] } }))
  return { dir, at, start, call, admin }
}

/** Runs the command. Returns what it prints. */
async function moved(dir: string, options: { readonly dryRun?: true; readonly output?: 'json' | 'table' } = {}) {
  const lines: string[] = []
  const output = { out: (text: string) => void lines.push(text), err: (text: string) => void lines.push(text) }
  const { output: format = 'json', ...more } = options
  assert.equal(await stateMove({ from: dir, to: join(dir, 'dsn'), output: format, ...more }, output), 0)
  return lines.join('\n')
}

const outcomesOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(JSON.parse(text).map(({ kind, outcome }: Record<string, string>) => [kind, outcome]))

/** Every file except locks, with its content. */
async function filesIn(dir: string): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(dir)).filter((name) => !/\.lock(-journal)?$/.test(name))
  return new Map(await Promise.all(names.map(async (name) => [name, await readFile(join(dir, name), 'utf8')] as const)))
}

test('a gateway that moves to Postgres keeps its approvals, caps, labels and revocations', async (t) => {
  const { dir, at, start, call, admin } = await fixture(t)
  const before = await start({})
  t.after(() => before.close())
  call(before, 'waits', 'delete').catch(() => {})
  let approval = ''
  await until(async () => {
    approval = (await admin(before, 'GET', '/approvals?state=pending')).items[0]?.id ?? ''
    return approval !== ''
  }, 'an approval')
  assert.deepEqual([await call(before, 'a', 'rated'), await call(before, 'a', 'rated')], [null, null])
  assert.equal(await call(before, 'a', 'rated'), 'rate_limited')
  assert.equal(await call(before, 'tainted', 'read'), null)
  assert.equal(await call(before, 'tainted', 'send'), 'tainted_sink')
  await admin(before, 'POST', '/revocations', { target: { session: 'default/assistant/gone' } })
  assert.equal(await call(before, 'gone', 'free'), 'revoked')
  await assert.rejects(moved(dir), /is in use by another process .*; stop the gateway first/)
  await before.kill()
  const files = await filesIn(dir)

  assert.equal(outcomesOf(await moved(dir, { dryRun: true })).approvals, 'would move')
  const outcomes = outcomesOf(await moved(dir))
  for (const kind of ['approvals', 'taints', 'revocations', 'counters', 'notifications', 'seal-key'])
    assert.equal(outcomes[kind], 'moved', kind)
  assert.equal(outcomesOf(await moved(dir)).approvals, 'same')
  assert.match(await moved(dir, { output: 'table' }), /approvals +\d+ +\d+ +same[\s\S]*The files were not changed/)
  assert.deepEqual(await filesIn(dir), files)

  const after = await start({ stateBackend: { type: 'postgres', dsnFile: at('dsn') } })
  t.after(() => after.close())
  assert.equal(await call(after, 'a', 'rated'), 'rate_limited')
  assert.equal(await call(after, 'b', 'rated'), null)
  assert.equal(await call(after, 'tainted', 'send'), 'tainted_sink')
  assert.equal(await call(after, 'gone', 'free'), 'revoked')
  assert.equal((await admin(after, 'POST', `/approvals/${approval}/approve`, {})).state, 'approved')
  assert.equal(await call(after, 'waits', 'delete'), null)
  await assert.rejects(moved(dir), /gateways use the database|in use by another process/)
})

test('what cannot be moved is named in one line', async (t) => {
  const { dir, at } = await fixture(t)
  await assert.rejects(moved(at('missing')), /^Error: -from .*missing: there is no gateway.json$/)
  await writeFile(at('approvals.jsonl'), 'damaged\n')
  await assert.rejects(moved(dir), /^Error: journal .*approvals.jsonl is damaged at byte 0$/)
  await writeFile(at('dsn'), 'not a DSN\n')
  await assert.rejects(moved(dir), (error: Error) => /-to .*dsn: must hold one DSN/.test(error.message))
})
