import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTaskServer } from '@plat/testkit/mcp/tasks/task-fixture'
import { type Script, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { eventData, SseSplitter } from '../../wire/sse.ts'
import { type SharedFixture, startShared } from '../testing/shared.ts'

const closers: (() => unknown)[] = []
const ends = { after: (end: () => unknown) => void closers.push(end) }
let notes: ScriptedUpstream
let files: ScriptedUpstream
let hangs: ScriptedUpstream
let gateway: SharedFixture

before(async () => {
  ;[notes, files, hangs] = await Promise.all([
    startScriptedUpstream(),
    startScriptedUpstream(),
    startScriptedUpstream(),
  ])
  for (const one of [notes, files, hangs]) closers.push(() => one.close())
  notes.answers(subscribed('test://a'))
  files.answers(subscribed('test://b'))
  hangs.answers(() => {})
  const servers = { notes: notes.url, files: files.url, hangs: hangs.url }
  gateway = await startShared(ends, servers, { mcpListSeconds: 1 })
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

/** A server that agrees to everything, and notifies before and after its acknowledgement. */
function subscribed(uri: string): Script {
  return (request, response) => {
    const { id, params } = JSON.parse(request.body)
    const _meta = { 'io.modelcontextprotocol/subscriptionId': id }
    const send = (method: string, more: object) =>
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method, params: { ...more, _meta } })}\n\n`)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    send('notifications/resources/updated', { uri })
    send('notifications/subscriptions/acknowledged', { notifications: params.notifications })
    send('notifications/tools/list_changed', {})
  }
}

const HEADERS = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' }
const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

function messageOf(event: Uint8Array) {
  return JSON.parse(Buffer.from(eventData(event) ?? assert.fail('an event without data')).toString())
}

async function* listen(notifications: unknown, servers: readonly string[], signal: AbortSignal) {
  const response = await fetch(gateway.url, {
    method: 'POST',
    headers: {
      ...HEADERS,
      authorization: `Bearer ${gateway.token('s1', servers)}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({
      ...{ jsonrpc: '2.0', id: 'mine', method: 'subscriptions/listen' },
      params: { notifications, _meta: META },
    }),
    signal,
  })
  const splitter = new SseSplitter()
  for await (const chunk of response.body ?? []) for (const event of splitter.push(chunk)) yield messageOf(event)
}

test('one subscription has what its servers agreed to, and then their notifications', async () => {
  const wanted = {
    toolsListChanged: true,
    resourceSubscriptions: ['mcp://notes/test://a', 'mcp://other/test://c', 'test://d'],
  }
  const leave = new AbortController()
  const messages = []
  for await (const message of listen(wanted, ['notes', 'files'], leave.signal)) {
    messages.push(message)
    if (messages.length === 5) break
  }
  leave.abort()
  const [acknowledged, ...rest] = messages
  assert.deepEqual(acknowledged, {
    ...{ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged' },
    params: {
      notifications: { toolsListChanged: true, resourceSubscriptions: ['mcp://notes/test://a'] },
      _meta: { 'io.modelcontextprotocol/subscriptionId': 'mine' },
    },
  })
  const received = rest.map(({ method, params }) => `${method} ${params.uri ?? ''}`.trim()).sort()
  const updated = 'notifications/resources/updated mcp://'
  const changed = 'notifications/tools/list_changed'
  assert.deepEqual(received, [`${updated}files/test://b`, `${updated}notes/test://a`, changed, changed])
  assert.deepEqual(
    [notes, files].map(({ received }) => JSON.parse(received.at(-1)?.body ?? '').params.notifications),
    [{ toolsListChanged: true, resourceSubscriptions: ['test://a'] }, { toolsListChanged: true }],
  )
  await until(() => notes.received.at(-1)?.aborted === true, 'the subscription of the server to end')
})

test('a server that does not respond delays the acknowledgement only for a while', async () => {
  const leave = new AbortController()
  for await (const message of listen({ toolsListChanged: true }, ['notes', 'hangs'], leave.signal)) {
    assert.deepEqual(message.params.notifications, { toolsListChanged: true })
    break
  }
  leave.abort()
})

test('a subscription to nothing is acknowledged as such, and one without a filter is refused', async () => {
  const leave = new AbortController()
  for await (const message of listen({ toolsListChanged: false, taskIds: 1 }, ['notes'], leave.signal)) {
    assert.deepEqual(message.params.notifications, {})
    break
  }
  leave.abort()
  const response = await gateway.send({ method: 'subscriptions/listen', params: { _meta: META } }, HEADERS)
  assert.equal(response.status, 400)
})

test('a session follows its tasks at all servers', async (t) => {
  const server = await startTaskServer()
  const shared = await startShared(t, { tasks: server.url })
  t.after(() => server.close())
  const declaring = {
    ...META,
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
  }
  const headers = { ...HEADERS, authorization: `Bearer ${shared.token()}` }
  const call = (method: string, params: object, name: string) =>
    shared.send(
      { method, params: { ...params, _meta: declaring } },
      { ...headers, 'mcp-method': method, 'mcp-name': name },
    )
  const name = 'tasks__confirm_delete'
  const { taskId } = JSON.parse(await (await call('tools/call', { name, arguments: {} }, name)).text()).result
  const wanted = { notifications: { taskIds: [taskId, 'tasks/never-issued'] }, _meta: declaring }
  const stream = await shared.send({ method: 'subscriptions/listen', params: wanted }, headers)
  const splitter = new SseSplitter()
  const messages = []
  for await (const chunk of stream.body ?? []) {
    for (const event of splitter.push(chunk)) messages.push(messageOf(event))
    if (messages.length === 1) await (await call('tasks/cancel', { taskId }, taskId)).text()
    if (messages.length > 1) break
  }
  assert.deepEqual(messages[0].params.notifications, { taskIds: [taskId] })
  assert.deepEqual([messages[1].params.taskId, messages[1].params.status], [taskId, 'cancelled'])
})

test('a handshake that hangs does not delay the end of the gateway', async (t) => {
  const own = await startShared(t, { hangs: hangs.url }, { shutdownTimeoutSeconds: 600 })
  const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
  const begun = await own.send({ method: 'initialize', params: initialize })
  const session = begun.headers.get('mcp-session-id') ?? assert.fail()
  await begun.text()
  const count = hangs.received.length
  const call = own.send(
    { method: 'tools/call', params: { name: 'hangs__x', arguments: {} } },
    { 'mcp-session-id': session },
  )
  await hangs.request(count + 1)
  await own.stop()
  assert.match(await (await call).text(), /shutting down/)
})
