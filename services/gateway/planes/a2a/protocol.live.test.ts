import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { until } from '@plat/testkit/until'
import { type Posted, rpc, STRANGER, saying, setUpA2a } from './testing/fixture.ts'

const codeOf = ({ status, error }: Posted) => [status, error?.code, error?.data[0]?.reason]

test('invalid requests are refused with the errors of A2A 1.0, and are not forwarded', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const exposed = { 'default/helper': {}, 'default/slow': { streaming: false } }
  const { post } = await setUpA2a(t, agent, { exposed })
  const send = rpc('SendMessage', saying('hello'))
  const twice = '{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"a","id":"b"}}'
  const cases: [unknown, (string | number | undefined)[], object?][] = [
    [send, [200, -32009, 'VERSION_NOT_SUPPORTED'], { headers: { 'a2a-version': '' } }],
    [send, [200, -32601, 'UNKNOWN_METHOD'], { headers: { 'a2a-version': '0.3' } }],
    [send, [200, -32009, 'VERSION_NOT_SUPPORTED'], { headers: { 'a2a-version': '1.1' } }],
    ['{', [200, -32700, 'INVALID_REQUEST']],
    [twice, [200, -32700, 'INVALID_REQUEST']],
    [[send], [200, -32600, 'INVALID_REQUEST']],
    [{ jsonrpc: '2.0', method: 'SendMessage', params: saying('x') }, [200, -32600, 'INVALID_REQUEST']],
    [rpc('SendMessage', saying('x'), null), [200, -32600, 'INVALID_REQUEST']],
    [rpc('SendMessage', saying('x'), 1.5), [200, -32600, 'INVALID_REQUEST']],
    [{ ...send, jsonrpc: '1.0' }, [200, -32600, 'INVALID_REQUEST']],
    [rpc('message/send', saying('x')), [200, -32601, 'UNKNOWN_METHOD']],
    [rpc('toString'), [200, -32601, 'UNKNOWN_METHOD']],
    [rpc('GetExtendedAgentCard'), [200, -32004, 'UNSUPPORTED_OPERATION']],
    [rpc('GetTask'), [200, -32602, 'INVALID_REQUEST']],
    [rpc('GetTask', { id: 7 }), [200, -32602, 'INVALID_REQUEST']],
    [{ ...rpc('GetTask'), params: [] }, [200, -32602, 'INVALID_REQUEST']],
    [rpc('SendMessage', { message: null }), [200, -32602, 'INVALID_REQUEST']],
    [rpc('SendMessage', saying('x', { task_id: 'theirs' })), [200, -32001, 'TASK_NOT_FOUND']],
    [rpc('SendMessage', saying('x', { task_id: '', taskId: '' })), [200, -32602, 'INVALID_REQUEST']],
    [rpc('SendMessage', saying('x', { task__id: 'theirs' })), [200, -32602, 'INVALID_REQUEST']],
    [rpc('SendMessage', saying('x', { contextId: ['theirs'] })), [200, -32602, 'INVALID_REQUEST']],
    [rpc('ListTasks', { tenant: 'other' }), [200, -32602, 'INVALID_REQUEST']],
    [rpc('SendMessage', saying('x', { metadata: { skillId: '../x' } })), [200, -32602, 'INVALID_REQUEST']],
    [rpc('SendStreamingMessage', saying('x')), [200, -32004, 'UNSUPPORTED_OPERATION'], { agent: 'default/slow' }],
    [send, [415, 415, 'UNSUPPORTED_MEDIA_TYPE'], { headers: { 'content-type': 'text/plain' } }],
    [send, [200, 404, 'UNKNOWN_AGENT'], { agent: 'default/hidden' }],
    [send, [404, 404, 'UNKNOWN_AGENT'], { agent: 'default' }],
    [send, [404, 404, 'UNKNOWN_AGENT'], { agent: 'default/helper/more' }],
  ]
  for (const [body, expected, options] of cases)
    assert.deepEqual(codeOf(await post(body, options)), expected, JSON.stringify(body))
  assert.equal(agent.reached.length, 0)
  const named = await post(rpc('nothing', {}, 'my-id'))
  assert.equal(JSON.parse(named.text).id, 'my-id')
  assert.equal(JSON.parse((await post({ id: 'my-id', method: 'GetTask' })).text).id, 'my-id')
  assert.equal(JSON.parse((await post({ jsonrpc: '2.0', id: { a: 1 }, method: 'GetTask' })).text).id, null)
  assert.equal((await post(send, { headers: { 'a2a-version': '1.0' } })).error, null)
  const later = { _extra: { a: 1 }, future_member: [] }
  assert.equal((await post(rpc('SendMessage', saying('hello', later)))).error, null)
  const { message } = JSON.parse(agent.reached.at(-1)?.body ?? '').params
  assert.deepEqual({ ...message, ...later }, message)
})

test('a request without a token gets a challenge, and Allow has only POST', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { url, post, token } = await setUpA2a(t, agent)
  const none = await fetch(`${url}/a2a/default/helper`, { method: 'POST', body: '{}' })
  assert.equal(none.status, 401)
  assert.match(none.headers.get('www-authenticate') ?? '', /^Bearer /)
  const poor = await post(rpc('SendMessage', saying('x')), { token: token({ scope: 'agents:other' }) })
  assert.deepEqual([poor.status, poor.error?.code], [403, 403])
  assert.match(poor.headers.get('www-authenticate') ?? '', /insufficient_scope.*agents:helper/)
  const put = await fetch(`${url}/a2a/default/helper`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token()}` },
  })
  assert.deepEqual([put.status, put.headers.get('allow')], [405, 'POST'])
})

test('only the gateway sets the headers with the caller, and the token is not forwarded', async (t) => {
  // Shows D2.a2a.endpoint and D2.a2a.endpoint.onlyGateway.
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { post, token } = await setUpA2a(t, agent)
  const callerToken = token({ act: { sub: 'user:adá%' } })
  const forged = {
    'x-plat-agent': 'root',
    'x-plat-user': 'root',
    cookie: 'a=b',
    'x-other': 'x',
    dpop: 'y',
    'a2a-extensions': 'urn:e',
  }
  const sent = rpc('SendMessage', { ...saying('hello'), metadata: { big: 1 } })
  const body = JSON.stringify(sent).replace('"big":1', '"big":12345678901234567890 ')
  assert.equal((await post(body, { token: callerToken, headers: forged })).error, null)
  const [one] = agent.reached
  assert.ok(one !== undefined)
  assert.equal(one.body, body)
  const { headers } = one
  assert.deepEqual(
    ['x-plat-namespace', 'x-plat-agent', 'x-plat-session', 'x-plat-user', 'a2a-version', 'a2a-extensions'].map(
      (name) => headers[name],
    ),
    ['default', 'assistant', 's1', 'ad%C3%A1%25', '1.0', 'urn:e'],
  )
  for (const name of ['authorization', 'dpop', 'cookie', 'x-other']) assert.equal(headers[name], undefined)
  assert.equal(JSON.stringify(headers).includes(callerToken), false)
})

test('invalid responses of an agent are not relayed', async (t) => {
  const agent = await startTestAgent({
    instead({ body }, response) {
      const scenario = /"text":"as:([^"]*)"/.exec(body)?.[1]
      const answer = scenario === undefined ? undefined : ANSWERS[scenario]
      if (answer === undefined) return false
      response.writeHead(answer.status ?? 200, { 'content-type': answer.type ?? 'application/json' }).end(answer.body)
      return true
    },
  })
  t.after(() => agent.close())
  const { post } = await setUpA2a(t, agent)
  for (const [scenario, { code }] of Object.entries(ANSWERS)) {
    const { error, text } = await post(rpc('SendMessage', saying(`as:${scenario}`)))
    assert.equal(error?.code, code, `${scenario}: ${text}`)
    assert.equal(text.includes('secret'), false, scenario)
  }
  // Errors of the agent are relayed unchanged.
  const { error } = await post(rpc('GetTaskPushNotificationConfig', { taskId: 'none', id: 'x' }))
  assert.equal(error?.code, -32001)
})

test('a response about a task of another caller is not relayed', async (t) => {
  let swapped = ''
  const stream = 'text/event-stream'
  const task = (id: string) => ({ id, contextId: `context-of-${id}`, status: { state: 'TASK_STATE_WORKING' } })
  const agent = await startTestAgent({
    instead({ method, body }, response) {
      if (swapped === '') return false
      const { id } = JSON.parse(body)
      const result = method === 'GetTask' ? task(swapped) : { task: task(swapped) }
      const json = JSON.stringify({ jsonrpc: '2.0', id, result })
      const streams = method === 'SubscribeToTask'
      response.writeHead(200, { 'content-type': streams ? stream : 'application/json' })
      response.end(streams ? `data: ${json}\n\n` : json)
      return true
    },
  })
  t.after(() => agent.close())
  const exposed = { 'default/helper': { allowedCallers: ['*', 'team/*'] } }
  const { post, token } = await setUpA2a(t, agent, { exposed })
  const begun = async (bearer?: string) => {
    const { text } = await post(rpc('SendMessage', saying('work x')), bearer === undefined ? {} : { token: bearer })
    return String(JSON.parse(text).result.task.id)
  }
  const [mine, theirs] = [await begun(), await begun(token(STRANGER))]
  swapped = theirs
  assert.equal((await post(rpc('GetTask', { id: mine }))).error?.code, -32006)
  const watched = await post(rpc('SubscribeToTask', { id: mine }))
  assert.equal(watched.text.includes(theirs), false)
  assert.match(watched.text, /^data: \{.*"error":\{"code":502/)
  // A message does not make the caller the owner of the task either.
  const sent = await post(rpc('SendMessage', saying('x')))
  assert.deepEqual([sent.error?.code, sent.text.includes(theirs)], [502, false])
  swapped = ''
  assert.equal((await post(rpc('GetTask', { id: theirs }))).error?.code, -32001)
})

test('the time limit of an agent applies to its response head', async (t) => {
  // Shows D2.a2a.timeoutSeconds.
  const agent = await startTestAgent({ instead: ({ body }) => body.includes('sleep') })
  t.after(() => agent.close())
  const { post } = await setUpA2a(t, agent, { exposed: { 'default/helper': { timeoutSeconds: 1 } } })
  const slow = await post(rpc('SendMessage', saying('sleep')))
  assert.deepEqual([slow.status, slow.error?.code, slow.error?.data[0]?.reason], [200, 504, 'UPSTREAM_TIMEOUT'])
  // A busy machine may need more than one second.
  await until(async () => (await post(rpc('SendMessage', saying('hello')))).error === null, 'an answer in time')
})

interface A2aReply {
  readonly code: number
  readonly status?: number
  readonly type?: string
  readonly body: string
}

const ANSWERS: Readonly<Record<string, A2aReply>> = {
  text: { code: -32006, type: 'text/html', body: 'secret' },
  broken: { code: -32006, body: '{"jsonrpc":"2.0","secret"' },
  twice: { code: -32006, body: '{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"a"}},"result":{"message":{}}}' },
  batch: { code: -32006, body: '[]' },
  both: {
    code: -32006,
    body: '{"jsonrpc":"2.0","id":1,"result":{"message":{}},"error":{"code":1,"message":"secret"}}',
  },
  unknown: { code: -32006, body: '{"jsonrpc":"2.0","id":1,"result":{"secret":{}}}' },
  two: { code: -32006, body: '{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"a"},"message":{}}}' },
  stream: {
    code: -32006,
    type: 'text/event-stream',
    body: 'data: {"jsonrpc":"2.0","id":1,"result":{"message":{}}}\n\n',
  },
  down: { code: 502, status: 500, body: 'secret' },
  moved: { code: 502, status: 302, body: 'secret' },
  locked: { code: 502, status: 401, body: 'secret' },
}
