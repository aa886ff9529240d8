import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from '../../../testing/started.ts'

const RULES = [
  { name: 'ask', action: 'require_approval', match: { servers: ['notes'] } },
  { name: 'rest', action: 'allow' },
]

/** A gateway whose calls of `notes` need an approval, with another server whose results label the session, both the same process. */
async function setUp(t: TestContext) {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const { id } = JSON.parse(request.body)
    return json(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }))(request, response)
  })
  const dir = tempFolder()
  const [policyFile, upstreamsFile] = [join(dir, 'policies.json'), join(dir, 'upstreams.json')]
  // Trusted: a label of its results would end an approval for the session.
  const own = { url: upstream.url, namespaces: [], implicit: false, dataClass: 'internal', trust: 'trusted' }
  const notes = { ...own, auth: { type: 'none' }, toolLabels: {} }
  const servers = { 'default/notes': notes, 'default/web': { ...notes, trust: 'untrusted' } }
  await writeFile(upstreamsFile, JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} }))
  await writeFile(policyFile, policiesFile([testPolicy({ rules: RULES })]))
  const { gateway, issuer } = await started(t, {
    policyFile,
    upstreams: {},
    upstreamsFile,
    adminAuth: { devTokenApprovers: true },
  })
  /** Calls a tool in the session s1, for this user. */
  const call = async (user: string, name: string, server = 'notes') => {
    const response = await fetch(`${gateway.url}/mcp/${server}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${issuer.token({ act: { sub: `user:${user}` }, scope: 'tools:notes tools:web' })}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'pay', arguments: { name } },
      }),
    })
    return await response.text()
  }
  const admin = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${gateway.adminUrl}/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    return JSON.parse(await response.text())
  }
  const pending = async (): Promise<readonly { id: string; user: string }[]> =>
    (await admin('GET', 'approvals?state=pending')).items
  const waiting = async (user: string) => {
    await until(async () => (await pending()).some((one) => one.user === user), `the call of ${user}`)
    return (await pending()).find((one) => one.user === user)?.id ?? assert.fail()
  }
  const decide = (id: string, verdict: 'approve' | 'deny', body: object = {}) =>
    admin('POST', `approvals/${id}/${verdict}`, body)
  const forSessions = async () => (await admin('GET', 'session-approvals')).items
  return { call, waiting, decide, pending, upstream, forSessions }
}

test('an approval for a session does not cover another user in a session of the same name', async (t) => {
  const { call, waiting, decide, upstream } = await setUp(t)
  const first = call('ada', 'a')
  await decide(await waiting('ada'), 'approve', { scope: 'session' })
  assert.match(await first, /"result"/)
  assert.match(await call('ada', 'b'), /"result"/)
  assert.equal(upstream.received.length, 2)
  const other = call('eve', 'c')
  await decide(await waiting('eve'), 'deny')
  assert.match(await other, /approval_denied/)
  assert.equal(upstream.received.length, 2)
})

test('identical calls of two users in sessions of the same name need two approvals', async (t) => {
  const { call, waiting, decide, upstream } = await setUp(t)
  const [first, other] = [call('ada', 'a'), call('eve', 'a')]
  const [ofAda, ofEve] = [await waiting('ada'), await waiting('eve')]
  assert.notEqual(ofAda, ofEve)
  await decide(ofAda, 'approve')
  assert.match(await first, /"result"/)
  await decide(ofEve, 'deny')
  assert.match(await other, /approval_denied/)
  assert.equal(upstream.received.length, 1)
})

test('an approval for a session is listed with the label that ends its coverage', async (t) => {
  const { call, waiting, decide, forSessions } = await setUp(t)
  const first = call('ada', 'a')
  const id = await waiting('ada')
  await decide(id, 'approve', { scope: 'session' })
  await first
  assert.deepEqual(await newLabels(), [[id, []]])
  assert.match(await call('ada', 'page', 'web'), /"result"/)
  assert.deepEqual(await newLabels(), [[id, ['untrusted-input']]])
  const next = call('ada', 'b')
  await decide(await waiting('ada'), 'deny')
  assert.match(await next, /approval_denied/)

  async function newLabels() {
    return (await forSessions()).map((one: { id: string; newTaints: string[] }) => [one.id, one.newTaints])
  }
})
