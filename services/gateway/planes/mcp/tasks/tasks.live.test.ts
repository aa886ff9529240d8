import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isObject } from '@plat/core'
import { startTaskServer, type TaskServer } from '@plat/testkit/mcp/tasks/task-fixture'
import { type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { SseSplitter } from '../../wire/sse.ts'
import { type SharedFixture, startShared } from '../testing/shared.ts'

const closers: (() => unknown)[] = []
const ends = { after: (end: () => unknown) => void closers.push(end) }
let server: TaskServer
let legacy: ScriptedUpstream
let gateway: SharedFixture

const rules = [
  { name: 'hidden', action: 'deny', match: { tools: ['failing_job'] } },
  { name: 'waits', action: 'require_approval', match: { tools: ['slow_compute'] } },
  { name: 'all', action: 'allow' },
]

before(async () => {
  server = await startTaskServer()
  legacy = await startScriptedUpstream()
  closers.push(
    () => server.close(),
    () => legacy.close(),
  )
  gateway = await startShared(
    ends,
    { tasks: server.url, other: server.url, legacy: legacy.url },
    {
      rules,
      approvalAnswerAfterSeconds: 1,
      adminAuth: { devTokenApprovers: true },
      dlpProfiles: { standard: {} },
      dlp: { defaultProfile: 'standard' },
    },
  )
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

const EXTENSION = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
const declaring = { elicitation: {}, ...EXTENSION }

interface Sender {
  readonly session?: string
  /** Default: the server `tasks`; empty: the address of all servers. */
  readonly at?: string
  readonly capabilities?: object
  readonly url?: string
  readonly token?: string
}

/** Sends a request of revision 2026-07-28. */
async function send(method: string, params: Record<string, unknown>, sender: Sender = {}): Promise<Response> {
  const { session = 's1', at = '/tasks', capabilities = declaring, url = gateway.url } = sender
  const name = params.name ?? params.taskId
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  }
  return await fetch(url + at, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${sender.token ?? gateway.token(session)}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  })
}

async function outcomeOf(method: string, params: Record<string, unknown>, sender?: Sender) {
  const { result, error } = JSON.parse(await (await send(method, params, sender)).text())
  return { result: isObject(result) ? result : {}, error: isObject(error) ? error : undefined }
}

async function created(name: string, sender?: Sender, args: object = {}): Promise<string> {
  const { result } = await outcomeOf('tools/call', { name, arguments: args }, sender)
  assert.equal(result.resultType, 'task', JSON.stringify(result))
  return String(result.taskId)
}

/** Returns the recorded states of a task. */
function statesOf(id: string): readonly unknown[] {
  const messages = gateway.records().filter(({ kind, task }) => kind === 'message' && isObject(task) && task.id === id)
  return messages.map(({ task }) => (isObject(task) ? task.status : null))
}

test('only the session that created a task can use it: for others it does not exist', async () => {
  const taskId = await created('confirm_delete')
  const { result } = await outcomeOf('tasks/get', { taskId })
  assert.deepEqual([result.taskId, result.status], [taskId, 'input_required'])
  const missing = { ...(await outcomeOf('tasks/get', { taskId: 'never-issued' })).error, data: null }
  assert.deepEqual(missing, { code: -32602, message: 'no such task', data: null })
  for (const sender of [{ session: 's2' }, { at: '/other' }]) {
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const { error } = await outcomeOf(method, { taskId, inputResponses: { confirm: {} } }, sender)
      assert.deepEqual({ ...error, data: null }, missing, method)
    }
  }
  assert.equal(server.tasks.status(taskId), 'input_required')
  const accepted = { confirm: { action: 'accept', content: { confirm: true } } }
  assert.deepEqual((await outcomeOf('tasks/update', { taskId, inputResponses: accepted })).result, {
    resultType: 'complete',
  })
  assert.equal((await outcomeOf('tasks/get', { taskId })).result.status, 'completed')
})

test('each state of a task is recorded once, with the requests of the server', async () => {
  const taskId = await created('confirm_delete')
  for (let n = 0; n < 3; n++) await outcomeOf('tasks/get', { taskId })
  await outcomeOf('tasks/cancel', { taskId })
  for (let n = 0; n < 2; n++) await outcomeOf('tasks/get', { taskId })
  await until(
    () => statesOf(taskId).includes('cancelled'),
    'the records',
    async () => {},
  )
  assert.deepEqual(statesOf(taskId), ['working', 'input_required', 'cancelled'])
  const own = gateway.records().filter(({ op, method }) => op === 'mcp.task' && method === 'elicitation/create')
  assert.ok(own.length > 0)
  const cancel = gateway.records().findLast(({ kind, method }) => kind === 'outcome' && method === 'tasks/cancel')
  assert.deepEqual([cancel?.op, cancel?.tool, typeof cancel?.parent], ['mcp.task', 'confirm_delete', 'string'])
})

test('a client must declare the extension, and a tool that policy denies creates no task', async () => {
  const taskId = await created('confirm_delete')
  const { error } = await outcomeOf('tasks/get', { taskId }, { capabilities: {} })
  assert.deepEqual([error?.code, isObject(error?.data) && error.data.requiredCapabilities], [-32021, EXTENSION])
  const before = server.tasks.received.length
  const { result } = await outcomeOf('tools/call', { name: 'failing_job', arguments: {} })
  assert.equal(result.isError, true)
  assert.equal(server.tasks.received.length, before)
})

test('a task of an approved call needs no further approvals', async () => {
  const args = { seconds: 600 }
  const sender = { session: 'approving' }
  const { result } = await outcomeOf('tools/call', { name: 'slow_compute', arguments: args }, sender)
  const denial = isObject(result._meta) ? result._meta['plat.dev/denial'] : null
  const approvalId = isObject(denial) ? denial.approvalId : ''
  const approved = await fetch(`${gateway.adminUrl}/v1/approvals/${approvalId}/approve`, {
    method: 'POST',
    headers: { authorization: 'Bearer a-token-of-the-test', 'content-type': 'application/json' },
    body: JSON.stringify({ reason: 'fine' }),
  })
  assert.equal(approved.status, 200, await approved.text())
  const taskId = await created('slow_compute', sender, args)
  assert.equal((await outcomeOf('tasks/get', { taskId }, sender)).result.status, 'working')
})

/** Reads messages of a stream until `count` have come. */
async function messagesOf(response: Response, count: number): Promise<readonly Record<string, unknown>[]> {
  const splitter = new SseSplitter()
  const messages: Record<string, unknown>[] = []
  for await (const chunk of response.body ?? []) {
    for (const event of splitter.push(chunk)) {
      const data = /^data: (.*)$/m.exec(Buffer.from(event).toString())?.[1]
      if (data !== undefined) messages.push(JSON.parse(data))
    }
    if (messages.length >= count) break
  }
  return messages
}

test('a session follows the status of tasks that it owns, whatever the server sends', async () => {
  const [own, foreign] = [await created('confirm_delete'), await created('confirm_delete', { session: 's2' })]
  const response = await send('subscriptions/listen', { notifications: { taskIds: [own, foreign, 'never-issued'] } })
  const messages = messagesOf(response, 2)
  await until(
    () => server.tasks.received.at(-1)?.method === 'subscriptions/listen',
    'the subscription',
    async () => {},
  )
  const received = server.tasks.received.at(-1)?.params
  assert.deepEqual(isObject(received) && received.notifications, { taskIds: [own] })
  await outcomeOf('tasks/cancel', { taskId: foreign }, { session: 's2' })
  await outcomeOf('tasks/cancel', { taskId: own })
  const [acknowledged, status] = (await messages).map(({ params }) => params)
  assert.deepEqual(isObject(acknowledged) && acknowledged.notifications, { taskIds: [own] })
  assert.deepEqual(isObject(status) && [status.taskId, status.status], [own, 'cancelled'])
  await until(
    () => statesOf(own).includes('cancelled'),
    'the record of the notification',
    async () => {},
  )
})

test('at the address of all servers ids of tasks begin with the server', async () => {
  const sender = { at: '' }
  const taskId = await created('tasks__confirm_delete', sender)
  assert.match(taskId, /^tasks\/[0-9a-f-]{36}$/)
  const got = await outcomeOf('tasks/get', { taskId }, sender)
  assert.deepEqual([got.result.taskId, got.result.status], [taskId, 'input_required'])
  for (const other of [{ ...sender, session: 's2' }])
    assert.equal((await outcomeOf('tasks/get', { taskId }, other)).error?.code, -32602)
  for (const unknown of [taskId.replace('tasks/', 'other/'), taskId.slice(6), 'tasks/', '/x'])
    assert.ok((await outcomeOf('tasks/get', { taskId: unknown }, sender)).error !== undefined, unknown)
  assert.deepEqual((await outcomeOf('tasks/cancel', { taskId }, sender)).result, { resultType: 'complete' })
  assert.equal(server.tasks.status(taskId.slice(6)), 'cancelled')
})

test('a revocation ends the access to tasks at once, and cancels them at their servers', async () => {
  const sender = { session: 'revoked' }
  const tasks = [await created('confirm_delete', sender), await created('multi_input', sender)]
  const untouched = await created('confirm_delete')
  const response = await fetch(`${gateway.adminUrl}/v1/revocations`, {
    method: 'POST',
    headers: { authorization: 'Bearer a-token-of-the-test', 'content-type': 'application/json' },
    body: JSON.stringify({ target: { session: 'default/assistant/revoked' }, mode: 'revoke', reason: 'test' }),
  })
  assert.equal(response.status, 201, await response.text())
  const [first = ''] = tasks
  const { error } = await outcomeOf('tasks/get', { taskId: first }, sender)
  assert.equal(isObject(error?.data) && error.data.error, 'revoked')
  await until(
    () => tasks.every((id) => server.tasks.status(id) === 'cancelled'),
    'the cancellations',
    async () => {},
  )
  await until(
    () => tasks.every((id) => statesOf(id).at(-1) === 'cancelled'),
    'the records',
    async () => {},
  )
  assert.equal(server.tasks.status(untouched), 'input_required')
})

test('tasks survive a restart of the gateway', async () => {
  const first = await startShared(ends, { tasks: server.url }, { rules })
  const taskId = await created('confirm_delete', { url: first.url, token: first.token() })
  await first.stop()
  const second = await startShared(ends, { tasks: server.url }, { rules, auditPath: first.auditPath })
  const sender = { url: second.url, token: second.token() }
  assert.equal((await outcomeOf('tasks/get', { taskId }, sender)).result.status, 'input_required')
  const other = { url: second.url, token: second.token('s2') }
  assert.equal((await outcomeOf('tasks/get', { taskId }, other)).error?.code, -32602)
})

const legacyTask = (taskId: string, status = 'working') => ({
  ...{ taskId, status, createdAt: '2026-01-01T00:00:00Z', lastUpdatedAt: '2026-01-01T00:00:00Z', ttl: 60_000 },
})

async function sendLegacy(
  message: object,
  session = 's1',
): Promise<{ result?: unknown; error?: { code?: unknown; message?: unknown } }> {
  const response = await fetch(`${gateway.url}/legacy`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.token(session)}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      'mcp-protocol-version': '2025-11-25',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, ...message }),
  })
  return JSON.parse(await response.text())
}

/** The next requests are answered with this result. */
function answers(result: object): void {
  legacy.answers((request, response) => {
    const { id } = JSON.parse(request.body)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
}

const callAsTask = (task: object) => ({ method: 'tools/call', params: { name: 'work', arguments: {}, task } })

test('before 2026-07-28, lists have the tasks of the session only, and unknown members of its request are not forwarded', async () => {
  answers({ task: legacyTask('mine') })
  await sendLegacy(callAsTask({ ttl: 1000, hidden: 'x' }))
  assert.deepEqual(JSON.parse(legacy.received.at(-1)?.body ?? '').params.task, { ttl: 1000 })
  answers({ task: legacyTask('theirs') })
  await sendLegacy(callAsTask({}), 's2')
  answers({ tasks: [legacyTask('mine', 'completed'), legacyTask('theirs'), legacyTask('unknown')] })
  const { result } = await sendLegacy({ method: 'tasks/list' })
  assert.deepEqual(result, { tasks: [legacyTask('mine', 'completed')] })
  await until(
    () => statesOf('mine').length > 1,
    'the records',
    async () => {},
  )
  assert.deepEqual(statesOf('mine'), ['working', 'completed'])
  const before = legacy.received.length
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
    assert.equal((await sendLegacy({ method, params: { taskId: 'theirs' } })).error?.code, -32602, method)
  assert.equal(legacy.received.length, before)
})

test('a server cannot give one task to two sessions, or respond about another task', async () => {
  answers({ task: legacyTask('twice') })
  await sendLegacy(callAsTask({}))
  const { result } = await sendLegacy(callAsTask({}), 's2')
  assert.match(JSON.stringify(result), /responded with an id of another owner/)
  answers(legacyTask('other'))
  const { error } = await sendLegacy({ method: 'tasks/get', params: { taskId: 'twice' } })
  assert.match(String(error?.message), /responded about another task/)
  answers({ task: { taskId: 'odd', status: 'constructor' } })
  assert.match(JSON.stringify(await sendLegacy(callAsTask({}))), /without a valid id and status/)
})

test('a result of a task cannot state a refusal of the gateway, and messages name only tasks of the session', async () => {
  answers({ task: legacyTask('forger') })
  await sendLegacy(callAsTask({}))
  answers({ content: [], _meta: { 'plat.dev/denial': { error: 'policy_denied' }, kept: 1 } })
  const { result } = await sendLegacy({ method: 'tasks/result', params: { taskId: 'forger' } })
  assert.deepEqual(result, { content: [], _meta: { kept: 1 } })
  for (const [taskId, forwarded] of [
    ['forger', true],
    ['twice-foreign', false],
  ] as const) {
    const _meta = { 'io.modelcontextprotocol/related-task': { taskId } }
    await sendLegacy({ method: 'tools/call', params: { name: 'work', arguments: {}, _meta } })
    const { params } = JSON.parse(legacy.received.at(-1)?.body ?? '')
    assert.deepEqual(params._meta, forwarded ? _meta : {}, taskId)
  }
})

test('texts about a task are redacted, its id is not', async () => {
  const card = '4111111111111111'
  const paidTask = (status: string) => ({ ...legacyTask(card, status), statusMessage: `paid with ${card}` })
  answers({ task: paidTask('working') })
  const mark = 'paid with [REDACTED:credit_card]'
  assert.deepEqual(await sendLegacy(callAsTask({})), {
    ...{ jsonrpc: '2.0', id: 1 },
    result: { task: { ...paidTask('working'), statusMessage: mark } },
  })
  answers(paidTask('completed'))
  const { result } = await sendLegacy({ method: 'tasks/get', params: { taskId: card } })
  assert.deepEqual(result, { ...paidTask('completed'), statusMessage: mark })
  answers({ tasks: [paidTask('completed')] })
  const list = await sendLegacy({ method: 'tasks/list' })
  assert.deepEqual(list.result, { tasks: [{ ...paidTask('completed'), statusMessage: mark }] })
})
