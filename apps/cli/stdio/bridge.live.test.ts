import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { test } from 'node:test'
import { type Log, silentLog } from '@plat/process'
import { until } from '@plat/testkit/until'
import { childSpec, testBridge, textIn } from './testing/bridge.ts'

test('each session has its own process, and no other session can use it', async (t) => {
  const { client, socket, events } = await testBridge(t, [childSpec()])
  assert.equal(statSync(socket).mode & 0o777, 0o600)
  const [one, other] = [client('one'), client('other')]
  const [first, second] = [await one.open(), await other.open()]
  assert.deepEqual(
    [await one.call('count', first), await one.call('count', first), await other.call('count', second)],
    ['1', '2', '1'],
  )
  assert.equal(await other.call('count', first), '404 ')
  assert.equal((await one.send(null, { session: first, method: 'DELETE' })).status, 204)
  assert.equal(await one.call('count', first), '404 ')
  await until(() => events.some(({ event }) => event === 'ended'), 'the process of the ended session to be stopped')
  assert.deepEqual(
    events.map((event) => [event.event, 'isExpected' in event && event.isExpected]),
    [
      ['started', false],
      ['started', false],
      ['ended', true],
    ],
  )
})

test('without sessions of the protocol a process belongs to the session of plat', async (t) => {
  const { client } = await testBridge(t, [childSpec()])
  const counts = [
    await client('one').call('count'),
    await client('one').call('count'),
    await client('two').call('count'),
  ]
  assert.deepEqual(counts, ['1', '2', '1'])
})

test('a shared process has one handshake, and answers each caller alone', async (t) => {
  const { client } = await testBridge(t, [childSpec({ perSession: false })])
  const [one, other] = [client('one'), client('other')]
  const [first, second] = await Promise.all([one.open(), other.open()])
  const pids = await Promise.all([one.call('pid', first), other.call('pid', second)])
  assert.equal(pids[0], pids[1])
  assert.equal(await other.call('handshakes', second), '1 1')
  // The same id at the same time, and progress under the same token.
  const call = (name: string) => ({
    jsonrpc: '2.0',
    id: 'x',
    method: 'tools/call',
    params: { name, arguments: {}, _meta: { progressToken: 't' } },
  })
  const [counted, progressed] = await Promise.all([
    one.send(call('count'), { session: first }),
    other.send(call('progress'), { session: second }),
  ])
  assert.deepEqual([counted.messages.length, counted.messages[0]?.id, textIn(counted)], [1, 'x', '1'])
  assert.deepEqual(
    progressed.messages.map(({ id, method, params }) => [id, method, Object(params).progressToken]),
    [
      [undefined, 'notifications/progress', 't'],
      ['x', undefined, undefined],
    ],
    'the log line could be about another session',
  )
  const response = await one.call('ask', first)
  assert.match(response, /not offered/, 'a request could be for any session')
  const level = await one.send({ jsonrpc: '2.0', id: 1, method: 'logging/setLevel' }, { session: first })
  assert.deepEqual(Object(level.messages[0]?.error).code, -32601)
})

test('a shared process answers a handshake with the revision that the client requested, if that is older', async (t) => {
  const { client } = await testBridge(t, [childSpec({ perSession: false })])
  const responseOf = async (protocolVersion: string) => {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } }
    const { messages } = await client().send({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
    return Object(messages[0]?.result).protocolVersion
  }
  for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) assert.equal(await responseOf(revision), revision)
  for (const other of ['2024-01-01', '2027-01-01', '"']) assert.equal(await responseOf(other), '2025-11-25')
})

test('a process of one session sends its requests, log lines and changes to its client', async (t) => {
  const { client } = await testBridge(t, [childSpec()])
  const one = client()
  const session = await one.open()
  const stream: unknown[] = []
  void one.send(null, { session, method: 'GET', seen: ({ method }) => void stream.push(method) }).catch(() => {})
  await until(async () => {
    await one.send({ jsonrpc: '2.0', method: 'notifications/changed' }, { session })
    return stream.includes('notifications/tools/list_changed')
  }, 'the change on the stream')
  const message = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'ask' } }
  const sent: Promise<unknown>[] = []
  const response = await one.send(message, {
    session,
    seen(request) {
      if (request.method !== 'sampling/createMessage') return
      const answer = { jsonrpc: '2.0', id: request.id, result: { model: 'm' } }
      sent.push(one.send(answer, { session }).then(() => one.send(answer, { session })))
    },
  })
  assert.equal(textIn(response), '{"model":"m"}')
  await Promise.all(sent)
})

test('a subscription gets its own events, under the id that its client chose', async (t) => {
  const { client } = await testBridge(t, [childSpec({ perSession: false })])
  const events: unknown[] = []
  const abort = new AbortController()
  const listening = client().send(
    { jsonrpc: '2.0', id: 'mine', method: 'subscriptions/listen' },
    { modern: true, signal: abort.signal, seen: ({ params }) => void events.push(Object(params)._meta) },
  )
  await until(() => events.length === 1, 'the event')
  assert.deepEqual(events, [{ 'io.modelcontextprotocol/subscriptionId': 'mine' }])
  abort.abort()
  await assert.rejects(listening)
})

test('a broken message ends the calls that could have waited for it, and no process', async (t) => {
  const { client } = await testBridge(t, [childSpec({ env: { GREETING: 'Server is running' } })])
  const one = client()
  const session = await one.open()
  const pid = await one.call('pid', session)
  assert.equal(await one.call('broken', session), '502 it wrote a line that is not a JSON-RPC message')
  assert.equal(await one.call('utf8', session), '502 it wrote a line that is not a JSON-RPC message')
  assert.equal(await one.call('huge', session), '502 it wrote a message that is too long')
  assert.equal(await one.call('wrong', session), 'right')
  assert.equal(await one.call('chatter', session), 'done')
  assert.equal(await one.call('pid', session), pid)
})

test('a server that dies ends its calls, and is started again for the same session with its handshake', async (t) => {
  const { client, events, bridge } = await testBridge(t, [childSpec()])
  const one = client()
  const session = await one.open()
  assert.equal(await one.call('die', session), '502 the process ended: exit code 7')
  assert.match(await one.call('count', session), /^503 it failed and is started again later/)
  assert.equal(await client('other').call('count'), '1', 'another session does not wait')
  await until(async () => (await one.call('handshakes', session)) === '1 1', 'the restart')
  const ended = events.find((event) => event.event === 'ended')
  assert.ok(ended?.event === 'ended' && !ended.isExpected && ended.restartsAfterMs > 0)
  const [status] = bridge.status().servers
  assert.deepEqual([status?.failures, status?.lastFailure, status?.pids.length], [1, 'exit code 7', 2])
})

test('a command that does not exist is a failure with its reason', async (t) => {
  const { client, events } = await testBridge(t, [childSpec({ argv: ['/does/not/exist'] })])
  const answer = await client().call('count')
  assert.match(answer, /^502 the process ended: .*ENOENT/)
  assert.deepEqual(
    events.map(({ event }) => event),
    ['failed'],
  )
})

test('the failure of a server that never worked has its last line on stderr, without secrets', async (t) => {
  const script = 'console.error("no such file:", process.env.KEY); process.exit(3)'
  const spec = childSpec({ argv: [process.execPath, '-e', script], env: { KEY: 'geheimnis' }, secrets: ['KEY'] })
  const { client } = await testBridge(t, [spec])
  const answer = await client().call('count')
  assert.equal(answer, '502 the process ended: exit code 3; it wrote: no such file: [removed]')
})

test('a client that leaves cancels its call', async (t) => {
  const { client } = await testBridge(t, [childSpec()])
  const one = client()
  const session = await one.open()
  const abort = new AbortController()
  const message = { jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'hang' } }
  const hanging = one.send(message, { session, signal: abort.signal })
  await until(async () => (await one.call('cancelled', session)) === 'true', 'the call to wait')
  abort.abort()
  await assert.rejects(hanging)
  await until(async () => (await one.call('cancelled', session)) === 'cancelled', 'the cancellation')
})

test('a server that floods waits for its reader', async (t) => {
  let left = 400
  const log: Log = {
    ...silentLog,
    info(fields) {
      const [, count] = /^left (\d+)/.exec(String(Reflect.get(fields, 'stderr'))) ?? []
      if (count !== undefined) left = Number(count)
    },
    child: () => log,
  }
  const { client } = await testBridge(t, [childSpec()], log)
  const one = client()
  const session = await one.open()
  const { promise: hold, resolve: read } = Promise.withResolvers<void>()
  const message = { jsonrpc: '2.0', id: 9, method: 'tools/call', params: { name: 'flood' } }
  const flooding = one.send(message, { session, hold })
  let before = 400
  let looks = 0
  await until(() => {
    looks = left < 400 && left === before ? looks + 1 : 0
    before = left
    return looks === 30
  }, 'the server to wait')
  assert.ok(left > 200, `${left} messages are left to write`)
  read()
  const flood = await flooding
  assert.deepEqual([flood.messages.length, textIn(flood)], [401, 'flooded'])
})

test('stderr is logged line by line, bounded, without control characters and secrets', async (t) => {
  const lines: string[] = []
  const warnings: object[] = []
  const log: Log = {
    debug() {},
    info: (fields) => void ('stderr' in fields && lines.push(String(fields.stderr))),
    warn: (fields) => void warnings.push(fields),
    error() {},
    child: () => log,
  }
  const secret = 'hunter2-hunter2'
  const { client, bridge } = await testBridge(t, [childSpec({ env: { KEY: secret }, secrets: ['KEY'] })], log)
  assert.equal(await client().call('secrets'), 'written')
  await bridge.stop()
  assert.deepEqual(lines.slice(0, 2), ['key=[removed]', '\\u001b[2Jcleared\\u0007'])
  assert.ok(lines[2]?.startsWith('xxxx') && lines[2].length < 4200)
  assert.ok(lines.length <= 1000 && warnings.length > 0, String(lines.length))
})

test('an edit takes effect at the next call of the same session', async (t) => {
  const { client, bridge } = await testBridge(t, [childSpec()])
  const one = client()
  const session = await one.open()
  assert.equal(await one.call('env', session, { name: 'MODE' }), 'null')
  bridge.serve([childSpec({ env: { MODE: 'new' } })])
  assert.equal(await one.call('env', session, { name: 'MODE' }), '"new"')
  bridge.serve([])
  assert.equal(await one.call('count', session), '404 no such server')
})
