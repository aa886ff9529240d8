import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { TaskState } from '@a2a-js/sdk'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { startLegacyAgent } from '@plat/testkit/a2a-agent-03'
import type { TestAgent } from '@plat/testkit/a2a-server'
import { ledgerLines } from '@plat/testkit/ledger'
import type { Message } from 'a2a-sdk-0.3'
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from 'a2a-sdk-0.3/client'
import { type A2aFixture, asking, eventsOf, rpc, saying, setUpA2a } from '../testing/fixture.ts'

const LEGACY = 'default/old'
const NAMES = ['default/helper', LEGACY]

let modern: TestAgent
let legacy: TestAgent
let fixture: A2aFixture
let stop = async () => {}

before(async () => {
  const ends: (() => unknown)[] = []
  modern = await startTestAgent()
  legacy = await startLegacyAgent()
  const t = { after: (end: () => unknown) => void ends.push(end) }
  const rules = [
    { name: 'all', action: 'allow' },
    {
      name: 'no-words',
      action: 'deny',
      match: { skills: ['checked'] },
      when: "method == 'SendMessage' && args.params.message.parts[0].text == 'evil'",
    },
  ]
  const exposed = { 'default/helper': {}, [LEGACY]: { endpoint: legacy.url, protocolVersion: '0.3' } }
  fixture = await setUpA2a(t, modern, { exposed, rules, a2a: { pushNotificationHosts: ['hooks.example'] } })
  stop = async () => {
    for (const end of ends.reverse()) await end()
    await Promise.all([modern.close(), legacy.close()])
  }
})

after(() => stop())

const scope = 'agents:old agents:helper'

/** The client of the SDK of 0.3, configured by the card that the gateway serves to it. */
function legacyClient(agent: string) {
  const bearer = fixture.token({ scope })
  const fetchImpl: typeof fetch = (input, init) =>
    fetch(input, {
      ...init,
      headers: { ...Object.fromEntries(new Headers(init?.headers)), authorization: `Bearer ${bearer}` },
    })
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  })
  return factory.createFromUrl(`${fixture.url}/a2a/${agent}/`, '.well-known/agent-card.json')
}

function legacyMessage(text: string, more: Partial<Message> = {}): { message: Message } {
  return { message: { kind: 'message', messageId: 'm1', role: 'user', parts: [{ kind: 'text', text }], ...more } }
}

test('a client of 0.3 sends, streams, gets and cancels tasks of agents of both versions', async () => {
  for (const agent of NAMES) {
    const client = await legacyClient(agent)
    const hello = await client.sendMessage(legacyMessage('hello'))
    assert.equal(hello.kind, 'message', agent)
    const kinds: string[] = []
    let task = ''
    for await (const event of client.sendMessageStream(legacyMessage('work a|b'))) {
      kinds.push(event.kind === 'status-update' ? `${event.status.state} ${event.final}` : event.kind)
      if (event.kind === 'task') task = event.id
    }
    assert.deepEqual(kinds, ['task', 'working false', 'artifact-update', 'artifact-update', 'completed true'], agent)
    const got = await client.getTask({ id: task })
    assert.deepEqual([got.kind, got.id, got.status.state], ['task', task, 'completed'])
    const [artifact] = got.artifacts ?? []
    assert.deepEqual(
      artifact?.parts.map((part) => (part.kind === 'text' ? part.text : '')),
      ['a', 'b'],
    )
    await assert.rejects(client.getTask({ id: 'unknown-task' }), { name: 'TaskNotFoundError' })

    let waiting = ''
    const states: string[] = []
    for await (const event of client.sendMessageStream(legacyMessage('wait'))) {
      if (event.kind === 'task') waiting = event.id
      if (event.kind !== 'status-update') continue
      states.push(event.status.state)
      if (event.status.state === 'working') await client.cancelTask({ id: waiting })
    }
    assert.deepEqual(states, ['working', 'canceled'], agent)
  }
})

test('a client of 1.0 sends, streams and gets tasks of an agent that only speaks 0.3', async () => {
  const client = await fixture.client(fixture.token({ scope }), LEGACY)
  const hello = await client.sendMessage(asking('hello'))
  assert.ok('messageId' in hello && hello.parts[0]?.content?.$case === 'text')
  const events = await eventsOf(client.sendMessageStream(asking('work a|b'))).all
  const kinds = events.map(({ payload }) => payload?.$case)
  assert.deepEqual(kinds, ['task', 'statusUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate'])
  const [first] = events
  assert.ok(first?.payload?.$case === 'task')
  const task = await client.getTask({ tenant: '', id: first.payload.value.id, historyLength: undefined })
  assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED)
  const need = await client.sendMessage(asking('need'))
  assert.ok('status' in need && need.status?.state === TaskState.TASK_STATE_INPUT_REQUIRED)
  const [sent] = legacy.reached.slice(-3)
  assert.deepEqual([sent?.headers['a2a-version'], sent?.method], ['0.3', 'message/stream'])
  const list = await fixture.post(rpc('ListTasks'), { agent: LEGACY, token: fixture.token({ scope }) })
  assert.equal(list.error?.code, -32004)
})

test('parts of every kind, metadata and exact numbers reach the other version and come back', async () => {
  const parts = [
    { kind: 'text', text: 'hello', metadata: { a: 1 } },
    { kind: 'file', file: { bytes: 'aGk=', mimeType: 'text/plain', name: 'a.txt' } },
    { kind: 'file', file: { uri: 'https://x.example/a' } },
    { kind: 'data', data: { big: 0, deep: { kind: 'text' } } },
    { kind: 'data', data: { value: [1] }, metadata: { data_part_compat: true } },
  ]
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'message/send',
    params: { message: { ...legacyMessage('').message, parts } },
  }
  const json = JSON.stringify(body).replace('"big":0', '"big":12345678901234567890')
  const options = { agent: LEGACY, token: fixture.token({ scope }), headers: { 'a2a-version': '' } }
  const { text } = await fixture.post(json, options)
  const sent = legacy.reached.at(-1)?.body ?? ''
  // The agent itself rounds it in its response.
  assert.ok(sent.includes('"big":12345678901234567890'), sent)
  assert.deepEqual(JSON.parse(text).result.parts, JSON.parse(json).params.message.parts)
  assert.deepEqual(JSON.parse(sent), JSON.parse(json))
  await fixture.post(json, { ...options, agent: 'default/helper' })
  assert.deepEqual(JSON.parse(modern.reached.at(-1)?.body ?? '').params.message.parts, [
    { text: 'hello', metadata: { a: 1 } },
    { raw: 'aGk=', mediaType: 'text/plain', filename: 'a.txt' },
    { url: 'https://x.example/a' },
    { data: { big: Number('12345678901234567890'), deep: { kind: 'text' } } },
    { data: [1] },
  ])
})

test('policies, owners and records see one form for both versions', async () => {
  const legacyCall = (method: string, params: object, more: object = {}) =>
    fixture.post(rpc(method, params), { headers: { 'a2a-version': '0.3' }, ...more })
  const refused = await legacyCall('message/send', legacyMessage('evil', { metadata: { skillId: 'checked' } }))
  assert.equal(refused.error?.data[0]?.metadata.rule, 'no-words')
  const begun = JSON.parse((await legacyCall('message/send', legacyMessage('work x'))).text).result
  assert.equal(begun.kind, 'task')
  // The same caller continues in the other version; another does not.
  const got = JSON.parse((await fixture.post(rpc('GetTask', { id: begun.id }))).text).result
  assert.deepEqual([got.id, got.status.state], [begun.id, 'TASK_STATE_COMPLETED'])
  const stranger = fixture.token({ act: { sub: 'user:eve' } })
  assert.equal((await legacyCall('tasks/get', { id: begun.id }, { token: stranger })).error?.code, -32001)
  const own = await legacyCall('tasks/get', { id: begun.id })
  assert.deepEqual(JSON.parse(own.text).result.kind, 'task')
  const records = ledgerLines(fixture.auditPath).map((line) => JSON.parse(line).rec)
  const methods = new Set(records.map(({ method }) => method).filter((method) => method !== undefined))
  assert.deepEqual(
    [...methods].filter((method) => String(method).includes('/')),
    [],
  )
})

test('parameters of 0.3 that are not valid, and methods of another version, are refused', async () => {
  const cases: [object, object, number][] = [
    [rpc('message/send', { message: { ...legacyMessage('x').message, role: 'root' } }), {}, -32602],
    [rpc('message/send', { message: { ...legacyMessage('x').message, parts: [{ text: 'x' }] } }), {}, -32602],
    [
      rpc('message/send', { message: { ...legacyMessage('x').message, parts: [{ kind: 'file', file: {} }] } }),
      {},
      -32602,
    ],
    [rpc('message/send', { message: { ...legacyMessage('x').message, kind: 'task' } }), {}, -32602],
    [rpc('message/send', saying('x')), {}, -32602],
    [rpc('tasks/list'), {}, -32601],
    [rpc('SendMessage', saying('x')), {}, -32009],
    [rpc('SendMessage', saying('x')), { 'a2a-version': '0.3' }, -32601],
    [rpc('message/send', legacyMessage('x')), { 'a2a-version': '1.0' }, -32601],
    [rpc('message/send', legacyMessage('x')), { 'a2a-version': '0.2' }, -32009],
    [rpc('agent/getAuthenticatedExtendedCard'), {}, -32007],
  ]
  const reached = modern.reached.length
  for (const [body, headers, code] of cases) {
    const { error } = await fixture.post(body, { headers: { 'a2a-version': '', ...headers } })
    assert.equal(error?.code, code, JSON.stringify(body))
  }
  assert.equal(modern.reached.length, reached)
})

test('both spellings of parameters are read as one, and a member with both is refused', async () => {
  const post = (message: object, headers = {}) => fixture.post(rpc('SendMessage', { message }), { headers })
  const message = { message_id: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello', media_type: 'text/plain' }] }
  assert.equal((await post(message)).error, null)
  const sent = JSON.parse(modern.reached.at(-1)?.body ?? '').params.message
  assert.deepEqual(sent, { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello', mediaType: 'text/plain' }] })
  assert.equal((await post({ ...message, task_id: 'theirs' })).error?.code, -32001)
  const twice = await post({ ...message, messageId: 'm2' })
  assert.deepEqual(
    [twice.error?.code, twice.error?.message],
    [-32602, 'params.message.messageId is written twice, in two spellings'],
  )
  const old = await fixture.post(
    rpc('message/send', {
      message: { kind: 'message', message_id: 'm', role: 'user', parts: [{ kind: 'text', text: 'hello' }] },
    }),
    { headers: { 'a2a-version': '' } },
  )
  assert.equal(old.error, null)
})

test('a message with too many parts to convert is refused, and is relayed between two agents of one version', async () => {
  const parts = Array.from({ length: 10_001 }, () => ({ text: 'hello' }))
  const many = rpc('SendMessage', { message: { messageId: 'm', role: 'ROLE_USER', parts } })
  assert.equal((await fixture.post(many)).error, null)
  const across = await fixture.post(many, { agent: LEGACY, token: fixture.token({ scope }) })
  assert.deepEqual([across.error?.code, across.error?.message], [-32602, 'params has too many parts'])
})

test('webhooks are registered in the version of the agent, which notifies them itself', async () => {
  const client = await legacyClient(LEGACY)
  const waiting = await client.sendMessage({ ...legacyMessage('need') })
  assert.ok(waiting.kind === 'task')
  const config = { id: 'c1', url: 'https://hooks.example/x', token: 't', authentication: { schemes: ['Bearer'] } }
  const set = await client.setTaskPushNotificationConfig({ taskId: waiting.id, pushNotificationConfig: config })
  assert.deepEqual(set.pushNotificationConfig.url, config.url)
  const named = { id: waiting.id, pushNotificationConfigId: 'c1' }
  assert.deepEqual((await client.getTaskPushNotificationConfig(named)).pushNotificationConfig.id, 'c1')
  assert.equal((await client.listTaskPushNotificationConfig({ id: waiting.id })).length, 1)
  await client.deleteTaskPushNotificationConfig(named)
  assert.equal((await client.listTaskPushNotificationConfig({ id: waiting.id })).length, 0)
  const across = { taskId: waiting.id, id: 'c2', url: config.url }
  const other = { agent: LEGACY, token: fixture.token({ scope }) }
  const { error } = await fixture.post(rpc('CreateTaskPushNotificationConfig', across), other)
  assert.equal(error?.code, -32003)
})

test('a deletion of a webhook may have no result, as in the Python SDK of 0.3', async (t) => {
  const agent = await startLegacyAgent({
    instead({ method, body }, response) {
      if (method !== 'tasks/pushNotificationConfig/delete') return false
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id }))
      return true
    },
  })
  t.after(() => agent.close())
  const exposed = { 'default/helper': { endpoint: agent.url, protocolVersion: '0.3' } }
  const { post } = await setUpA2a(t, agent, { exposed, a2a: { pushNotificationHosts: ['hooks.example'] } })
  const headers = { 'a2a-version': '0.3' }
  const begun = JSON.parse((await post(rpc('message/send', legacyMessage('need')), { headers })).text).result
  const deletion = rpc('tasks/pushNotificationConfig/delete', { id: begun.id, pushNotificationConfigId: 'c' })
  assert.equal((await post(deletion, { headers })).text, '{"jsonrpc":"2.0","id":1,"result":null}')
})

test('a card states what its reader can use', async () => {
  const card = async (agent: string, version: string | null) => {
    const headers = {
      authorization: `Bearer ${fixture.token({ scope })}`,
      ...(version !== null && { 'a2a-version': version }),
    }
    const response = await fetch(`${fixture.url}/a2a/${agent}/.well-known/agent-card.json`, { headers })
    assert.match(response.headers.get('vary') ?? '', /A2A-Version/)
    return JSON.parse(await response.text())
  }
  for (const agent of NAMES) {
    const isLegacy = agent === LEGACY
    const now = await card(agent, '1.0')
    assert.deepEqual(
      now.supportedInterfaces.map((one: { protocolVersion: string }) => one.protocolVersion),
      ['1.0', '0.3'],
    )
    assert.deepEqual([now.url, now.capabilities.pushNotifications], [undefined, !isLegacy])
    for (const version of [null, '0.3', '0.3.0']) {
      const old = await card(agent, version)
      assert.deepEqual([old.url, old.protocolVersion], [`${fixture.url}/a2a/${agent}`, '0.3.0'])
      assert.deepEqual([old.preferredTransport, old.capabilities.pushNotifications], ['JSONRPC', isLegacy])
    }
  }
})
