import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { json, type Script, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { type SharedFixture, startShared } from '../testing/shared.ts'

const closers: (() => unknown)[] = []
const ends = { after: (end: () => unknown) => void closers.push(end) }
let notes: ScriptedUpstream
let files: ScriptedUpstream
let gateway: SharedFixture

before(async () => {
  notes = await startScriptedUpstream()
  files = await startScriptedUpstream()
  closers.push(() => Promise.all([notes.close(), files.close()]))
  notes.answers(serverOf('test://a'))
  files.answers(serverOf('test://b'))
  gateway = await startShared(ends, { notes: notes.url, files: files.url }, { shutdownTimeoutSeconds: 1 })
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

/** A server with sessions whose stream has one notification. */
function serverOf(uri: string): Script {
  return (request, response) => {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const message = { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } }
      response.write(`id: 7\ndata: ${JSON.stringify(message)}\n\n`)
      return
    }
    const { id, method } = request.body === '' ? { id: undefined, method: 'DELETE' } : JSON.parse(request.body)
    if (id === undefined) return void response.writeHead(202).end()
    const handshake = {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 's', version: '1' },
    }
    const result = method === 'initialize' ? handshake : method === 'tools/list' ? { tools: [] } : { content: [] }
    const headers = { 'mcp-session-id': `of ${uri}` }
    return json(JSON.stringify({ jsonrpc: '2.0', id, result }), headers)(request, response)
  }
}

async function begin(at = gateway): Promise<Record<string, string>> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } }
  const begun = await at.send({ method: 'initialize', params })
  await begun.body?.cancel()
  return {
    'mcp-session-id': begun.headers.get('mcp-session-id') ?? assert.fail(),
    'mcp-protocol-version': '2025-11-25',
    authorization: `Bearer ${at.token()}`,
  }
}

test('the stream of a session has the notifications of all its servers, also of those that it uses later', async () => {
  const headers = await begin()
  const call = (name: string) => gateway.send({ method: 'tools/call', params: { name, arguments: {} } }, headers)
  await (await call('notes__x')).text()
  const leave = new AbortController()
  const accept = { accept: 'text/event-stream' }
  const stream = await fetch(gateway.url, { headers: { ...headers, ...accept }, signal: leave.signal })
  assert.deepEqual([stream.status, stream.headers.get('content-type')], [200, 'text/event-stream'])
  const reader = (stream.body ?? assert.fail()).pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const read = async (uri: string) => {
    while (!text.includes(uri)) text += (await reader.read()).value ?? assert.fail('the stream has ended')
  }
  await read('mcp://notes/test://a')
  await (await call('files__x')).text()
  await read('mcp://files/test://b')
  assert.doesNotMatch(text, /^id:/m, 'an event id would resume the stream of one server alone')
  const opened = [notes, files].map(({ received }) => received.find(({ method }) => method === 'GET'))
  assert.deepEqual(
    opened.map((one) => one?.headers['mcp-session-id']),
    ['of test://a', 'of test://b'],
  )
  leave.abort()
  await until(() => opened.every((one) => one?.aborted === true), 'the streams of the servers to end')
  const streams = () => gateway.records().filter(({ kind, method }) => kind === 'outcome' && method === 'GET')
  await until(() => streams().length === 3, 'a record for each stream of a server, and for the stream of the client')
  assert.deepEqual(
    streams()
      .map(({ server }) => server)
      .sort(),
    ['files', 'mcp', 'notes'],
  )
})

for (const isOpen of [true, false]) {
  const when = isOpen ? 'is open' : 'is opened later'
  test(`a list without a server that is still starting says so, and is announced in a stream that ${when}`, async (t) => {
    // Shows D3.mcp.mcpListSeconds.
    const slow = await startScriptedUpstream()
    t.after(() => slow.close())
    const hasStarted = Promise.withResolvers<void>()
    slow.answers(async (request, response) => {
      if (request.body.includes('"initialize"')) await hasStarted.promise
      return await serverOf('test://slow')(request, response)
    })
    const servers = { notes: notes.url, slow: slow.url }
    const other = await startShared(t, servers, { shutdownTimeoutSeconds: 1, mcpListSeconds: 1 })
    const headers = await begin(other)
    const list = async () => JSON.parse(await (await other.send({ method: 'tools/list' }, headers)).text()).result
    const listen = () => fetch(other.url, { headers: { ...headers, accept: 'text/event-stream' } })
    const early = isOpen ? await listen() : null
    const [left] = (await list())._meta['plat.dev/left-out']
    const expected =
      'slow did not respond within 1000 ms and may still be starting: list again later, or at notifications/tools/list_changed'
    assert.deepEqual(left, { server: 'slow', error: 'upstream_timeout', reason: expected })
    hasStarted.resolve()
    if (!isOpen) await until(async () => (await list())._meta === undefined, 'the server to be listed')
    const { body } = early ?? (await listen())
    const reader = (body ?? assert.fail()).pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('test://slow') || !text.includes('list_changed'))
      text += (await reader.read()).value ?? assert.fail('the stream has ended')
    assert.equal(text.split('notifications/tools/list_changed').length, 2, 'announced once')
    await reader.cancel()
  })
}

test('the end of a session ends the sessions at its servers', async () => {
  const headers = await begin()
  await (await gateway.send({ method: 'tools/list' }, headers)).text()
  const ended = await fetch(gateway.url, { method: 'DELETE', headers })
  // The SDKs for Python and TypeScript accept 200, 204 and 405.
  assert.deepEqual([ended.status, await ended.text()], [204, ''])
  const deleted = ({ received }: ScriptedUpstream) => received.filter(({ method }) => method === 'DELETE')
  await until(() => deleted(notes).length === 1 && deleted(files).length === 1, 'both sessions to end')
  assert.equal(deleted(notes)[0]?.headers['mcp-session-id'], 'of test://a')
})

test('a server that has lost its session gets the call again in a new one', async () => {
  const headers = await begin()
  const call = () => gateway.send({ method: 'tools/call', params: { name: 'notes__x', arguments: {} } }, headers)
  await (await call()).text()
  let lost = true
  notes.answers((request, response) => {
    const isCall = request.body.includes('tools/call')
    if (isCall && lost) {
      lost = false
      return void response.writeHead(404).end()
    }
    return serverOf('test://a')(request, response)
  })
  const { result } = JSON.parse(await (await call()).text())
  assert.deepEqual(result, { content: [] })
  const stream = await fetch(gateway.url, { headers: { authorization: headers.authorization ?? '' } })
  assert.equal(stream.status, 405, 'a stream without a session')
})
