import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { callOf, POLICIES } from '../../testing/approvals.ts'
import { started, TOKEN } from '../../testing/started.ts'

interface Answer {
  readonly isError: boolean
  readonly text: string
  /** `_meta["plat.dev/denial"]`; empty for other results. */
  readonly denial: Readonly<Record<string, unknown>>
}

interface Fixture {
  readonly upstream: ScriptedUpstream
  /** Sends a message; the client of `notes` may have a session. */
  post(
    body: string,
    more?: { readonly headers?: Record<string, string>; readonly signal?: AbortSignal },
  ): Promise<Response>
  /** Calls the tool `delete`, which needs an approval. */
  remove(secret: string): Promise<Answer>
  pending(): Promise<readonly string[]>
  decide(id: string, verdict: 'approve' | 'deny', reason?: string): Promise<void>
  /** Ends the session of the calls. */
  revoke(): Promise<void>
  /** Number of calls that the server has received. */
  executed(): number
}

async function setUp(t: TestContext, config: object): Promise<Fixture> {
  const dir = tempFolder()
  const policyFile = join(dir, 'policies.json')
  await writeFile(policyFile, POLICIES)
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const { id = null } = JSON.parse(request.body || '{}')
    const result = { content: [{ type: 'text', text: 'deleted' }], protocolVersion: '2025-06-18', capabilities: {} }
    response
      .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 's-1' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  const { gateway, issuer } = await started(t, {
    policyFile,
    upstreams: { notes: upstream.url },
    adminAuth: { mode: 'token', devTokenApprovers: true },
    shutdownTimeoutSeconds: 0,
    refusals: 'result',
    ...config,
  })
  const admin = (path: string, body?: object, list = 'approvals') =>
    fetch(`${gateway.url}/v1/${list}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const post: Fixture['post'] = (body, { headers = {}, signal } = {}) =>
    fetch(`${gateway.url}/mcp/notes`, {
      method: body === '' ? 'DELETE' : 'POST',
      headers: {
        authorization: `Bearer ${issuer.token()}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      ...(body !== '' && { body }),
      ...(signal !== undefined && { signal }),
    })
  return {
    upstream,
    post,
    remove: async (secret) => answerIn(await (await post(callOf(secret))).text()),
    async pending() {
      const { items }: { items: { id: string }[] } = JSON.parse(await (await admin('?state=pending')).text())
      return items.map(({ id }) => id)
    },
    async decide(id, verdict, reason = '') {
      assert.equal((await admin(`/${id}/${verdict}`, { reason })).status, 200)
    },
    async revoke() {
      const target = { session: 'default/assistant/s1' }
      assert.equal((await admin('', { target, reason: 'plat run has ended' }, 'revocations')).status, 201)
    },
    executed: () => upstream.received.filter(({ body }) => body.includes('tools/call')).length,
  }
}

function answerIn(text: string): Answer {
  const { result } = JSON.parse(text)
  const { isError = false, content, _meta } = result
  return { isError, text: content[0].text, denial: _meta?.['plat.dev/denial'] ?? {} }
}

/** A call of `delete` that the client leaves before it is decided; resolves to the id of its approval. */
async function leftBehind(fixture: Fixture, leave: () => Promise<unknown>): Promise<string> {
  await until(async () => (await fixture.pending()).length > 0, 'an approval')
  const [id = ''] = await fixture.pending()
  await leave()
  return id
}

test('a call that waits is answered in time, and runs once when it is repeated after the approval', async (t) => {
  // Shows D3.approvals.approvalAnswerAfterSeconds.
  const fixture = await setUp(t, { approvalAnswerAfterSeconds: 1 })
  const first = await fixture.remove('a')
  const [id = '', ...others] = await fixture.pending()
  assert.deepEqual(others, [])
  assert.equal(first.isError, true)
  assert.match(
    first.text,
    new RegExp(`^delete was not run: waiting for approval ${id}; repeat this call to learn the outcome\\.`),
  )
  const { error, approvalId, code, rule, retryAfterSeconds } = first.denial
  assert.deepEqual([error, approvalId, code, rule, retryAfterSeconds], ['approval_pending', id, 503, 'delete', 5])
  const open = await fixture.remove('a')
  assert.deepEqual([open.denial.error, open.denial.approvalId, await fixture.pending()], ['approval_pending', id, [id]])
  await fixture.decide(id, 'approve')
  assert.equal(fixture.executed(), 0, 'nothing runs until the call is repeated')
  const passed = await fixture.remove('a')
  assert.deepEqual([passed.isError, passed.text, fixture.executed()], [false, 'deleted', 1])
  const anew = await fixture.remove('a')
  assert.equal(anew.denial.error, 'approval_pending')
  assert.notEqual(anew.denial.approvalId, id)
  assert.equal(fixture.executed(), 1)
})

test('the approval of a call that was answered is withdrawn when its session ends', async (t) => {
  const fixture = await setUp(t, { approvalAnswerAfterSeconds: 0 })
  await fixture.remove('a')
  assert.equal((await fixture.pending()).length, 1)
  await fixture.revoke()
  await until(async () => (await fixture.pending()).length === 0, 'the approval to be withdrawn')
  assert.equal(fixture.executed(), 0)
})

test('a repeated call learns once that its approval was denied, and why; the next one starts a new approval', async (t) => {
  const fixture = await setUp(t, { approvalAnswerAfterSeconds: 0 })
  await fixture.remove('a')
  const [id = ''] = await fixture.pending()
  await fixture.decide(id, 'deny', 'not on a Monday')
  const denied = await fixture.remove('a')
  assert.deepEqual([denied.isError, denied.denial.error, denied.denial.approvalId], [true, 'approval_denied', id])
  assert.match(denied.text, /not on a Monday.* Do not repeat this call unless the user requests it\./)
  const anew = await fixture.remove('a')
  assert.equal(anew.denial.error, 'approval_pending')
  assert.notEqual(anew.denial.approvalId, id)
  assert.equal(fixture.executed(), 0)
})

test('a call that waits for the denial learns of it, and an identical call starts a new approval', async (t) => {
  const fixture = await setUp(t, { approvalAnswerAfterSeconds: 600 })
  const waiting = fixture.remove('a')
  const id = await leftBehind(fixture, () => Promise.resolve())
  await fixture.decide(id, 'deny')
  assert.equal((await waiting).denial.error, 'approval_denied')
  const next = fixture.remove('a')
  await until(async () => (await fixture.pending()).length > 0, 'a new approval')
  const [other = ''] = await fixture.pending()
  assert.notEqual(other, id)
  await fixture.decide(other, 'approve')
  assert.equal((await next).text, 'deleted')
})

test('a client that requested progress notifications is kept waiting by them', async (t) => {
  const fixture = await setUp(t, { approvalAnswerAfterSeconds: 0 })
  const body = callOf('a').replace('"params":{', '"params":{"_meta":{"progressToken":"p-1"},')
  const waiting = fixture.post(body)
  const id = await leftBehind(fixture, () => Promise.resolve())
  const stream = (await waiting).body?.getReader()
  const beat = Buffer.from((await stream?.read())?.value ?? []).toString()
  assert.match(beat, new RegExp(`notifications/progress.*"progressToken":"p-1".*waiting for approval ${id}`))
  await fixture.decide(id, 'approve')
  assert.match(Buffer.from((await stream?.read())?.value ?? []).toString(), /"text":"deleted"/)
  assert.equal(fixture.executed(), 1)
})

test('a client that requested progress notifications and takes no stream is answered in time', async (t) => {
  const fixture = await setUp(t, { approvalAnswerAfterSeconds: 0 })
  const body = callOf('a').replace('"params":{', '"params":{"_meta":{"progressToken":1},')
  const response = await fixture.post(body, { headers: { accept: 'application/json' } })
  assert.equal(answerIn(await response.text()).denial.error, 'approval_pending')
})

const id7 = callOf('a').replace('"id":1', '"id":7')
const handshake = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
})

const ways: readonly [string, (fixture: Fixture, session: string, connection: AbortController) => Promise<unknown>][] =
  [
    ['closes its connection', async (_fixture, _session, connection) => connection.abort()],
    [
      'cancels the call and keeps the connection',
      (fixture, session) =>
        fixture.post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }), {
          headers: { 'mcp-session-id': session },
        }),
    ],
    ['ends its session', (fixture, session) => fixture.post('', { headers: { 'mcp-session-id': session } })],
  ]

for (const [what, leave] of ways) {
  test(`the call of a client that ${what} does not run when it is approved later, but when it is repeated`, async (t) => {
    const fixture = await setUp(t, { approvalAnswerAfterSeconds: 600 })
    const session = (await fixture.post(handshake)).headers.get('mcp-session-id') ?? ''
    const connection = new AbortController()
    const left = fixture.post(id7, { headers: { 'mcp-session-id': session }, signal: connection.signal })
    const gone = left.then((response) => response.text()).catch(() => 'gone')
    const id = await leftBehind(fixture, () => leave(fixture, session, connection))
    await gone
    assert.deepEqual(await fixture.pending(), [id], 'the approval stays open')
    await fixture.decide(id, 'approve')
    assert.equal(fixture.executed(), 0)
    assert.equal((await fixture.remove('a')).text, 'deleted')
    assert.equal(fixture.executed(), 1)
  })
}
