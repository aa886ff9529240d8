import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { closed, listening } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { KubernetesApi, KubernetesApiError } from './api.ts'

/** Starts an API server whose responses come from `answer`. */
async function setUp(t: TestContext, answer: (url: string, response: ServerResponse) => void) {
  const server = createServer((request, response) => answer(request.url ?? '', response))
  const url = `http://127.0.0.1:${await listening(server)}`
  const dialer = createDialer({ clock: systemClock, log: silentLog })
  t.after(async () => {
    dialer.close()
    if (server.listening) await closed(server)
  })
  const responses: string[] = []
  const api = new KubernetesApi({
    access: { server: url, namespace: null, credentials: async () => ({ headers: {}, trust: {} }) },
    dialer,
    clock: systemClock,
    onAnswer: (method, status) => responses.push(`${method} ${status}`),
  })
  return { api, server, responses }
}

async function faultOf(asking: Promise<unknown>): Promise<KubernetesApiError> {
  const fault = await asking.then(
    () => null,
    (error: unknown) => error,
  )
  return fault instanceof KubernetesApiError ? fault : assert.fail(String(fault))
}

test('a refusal has status, reason, causes and retry delay', async (t) => {
  const { api, responses, server } = await setUp(t, (url, response) => {
    if (url === '/proxy') response.writeHead(502).end('<html>')
    else if (url === '/odd') response.writeHead(200).end('[1]')
    else {
      const causes = [
        { field: 'spec.a', message: 'Required value' },
        { field: '<nil>', message: 'some rules were not checked' },
      ]
      const status = { kind: 'Status', message: 'invalid', reason: 'Invalid', details: { causes } }
      response.writeHead(422, { 'retry-after': '3' }).end(JSON.stringify(status))
    }
  })
  const refused = await faultOf(api.ask({ method: 'POST', path: '/x', body: {} }))
  assert.deepEqual(
    [refused.status, refused.reason, refused.message, refused.retryAfterMs],
    [422, 'Invalid', 'invalid', 3000],
  )
  assert.deepEqual(refused.causes, [{ field: 'spec.a', message: 'Required value' }])
  const proxy = await faultOf(api.ask({ method: 'GET', path: '/proxy' }))
  assert.deepEqual([proxy.status, proxy.message], [502, 'the API server answers with status 502'])
  assert.equal((await faultOf(api.ask({ method: 'GET', path: '/odd' }))).status, 0)
  await closed(server)
  const gone = await faultOf(api.ask({ method: 'GET', path: '/x' }))
  assert.deepEqual([gone.status, gone.message.startsWith('the API server cannot be reached: ')], [0, true])
  assert.deepEqual(responses, ['POST 422', 'GET 502', 'GET 200', 'GET 0', 'GET 0'])
})

test('a watch yields its events, ends with its server or its reader, and fails with a reason', async (t) => {
  let open: ServerResponse | null = null
  const { api } = await setUp(t, (url, response) => {
    if (url.startsWith('/gone')) response.writeHead(410).end('{"kind":"Status","reason":"Expired","message":"too old"}')
    else {
      response.writeHead(200).write('{"type":"ADDED","object":{"a":1}}\n{"type":"MOD')
      open = response
    }
  })
  const never = new AbortController().signal
  const gone = await faultOf(api.watch('/gone', {}, never).next())
  assert.deepEqual([gone.status, gone.reason], [410, 'Expired'])

  const watch = api.watch('/open', { resourceVersion: '1' }, never)
  assert.deepEqual((await watch.next()).value, [{ type: 'ADDED', object: { a: 1 } }])
  const second = watch.next()
  const stated = (text: string) => (open ?? assert.fail()).write(text)
  stated('IFIED","object":{"a":2}}\n')
  assert.deepEqual((await second).value, [{ type: 'MODIFIED', object: { a: 2 } }])
  stated('not JSON\n')
  assert.match((await faultOf(watch.next())).message, /^a watch has failed: /)

  const stop = new AbortController()
  const stopped = api.watch('/open', {}, stop.signal)
  await stopped.next()
  const pending = stopped.next()
  let closedByUs = false
  const connection: ServerResponse = open ?? assert.fail()
  connection.on('close', () => {
    closedByUs = true
  })
  stop.abort()
  assert.deepEqual(await pending, { done: true, value: undefined })
  await until(() => closedByUs, 'the connection is closed')
  assert.deepEqual(await api.watch('/open', {}, stop.signal).next(), { done: true, value: undefined })
})

test('a slow reader applies backpressure to the server, and misses nothing', async (t) => {
  const many = 20_000
  const line = JSON.stringify({ type: 'MODIFIED', object: { text: 'x'.repeat(500) } })
  let sent = () => 0
  const { api } = await setUp(t, (_url, response) => {
    response.writeHead(200)
    sent = () => response.socket?.bytesWritten ?? 0
    for (let written = 0; written < many; written++) response.write(`${line}\n`)
    response.end()
  })
  let read = 0
  const batches: number[] = []
  for await (const batch of api.watch('/open', {}, new AbortController().signal)) {
    read += batch.length
    batches.push(batch.length)
    if (batches.length === 1) await still(sent)
  }
  assert.equal(read, many)
  assert.ok(Math.max(...batches) < many / 4, `${Math.max(...batches)} lines waited`)
})

/** Resolves once a count has stopped growing. */
async function still(count: () => number): Promise<void> {
  let same = 0
  let last = count()
  await until(
    () => same >= 20,
    'the server is held back',
    () => {
      same = count() === last ? same + 1 : 0
      last = count()
    },
  )
}
