import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { test } from 'node:test'
import { type Clock, systemClock, systemIds } from '@plat/core'
import { silentLog } from '@plat/process'
import { until } from '@plat/testkit/until'
import { readBody } from './body.ts'
import { type Exchange, type ListenOptions, listen } from './listen.ts'
import { mountProbes } from './probes.ts'
import { dial, raw, serving } from './testing/serving.ts'

const clock: Clock = systemClock
const build = {
  component: 'test',
  version: '1.2.3',
  commit: 'abc',
  buildDate: '2026-01-01T00:00:00Z',
  goVersion: 'node26',
  platform: 'linux/x64',
  tags: '',
}

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const echo: ListenOptions['api'] = (app) => {
  app.get('/hello', async () => ({ hello: true }))
  app.post('/echo', async (request) => request.body)
  app.get('/fails', async () => {
    throw new Error('the secret is 42')
  })
}

test('every response carries a request id, and a failed request does not reveal the cause', async () => {
  await serving({ api: echo }, async ({ url }) => {
    const ok = await fetch(`${url}/hello`)
    assert.equal(ok.status, 200)
    assert.match(ok.headers.get('x-plat-request-id') ?? '', UUID_V7)
    const failed = await fetch(`${url}/fails`)
    assert.equal(failed.status, 500)
    const body = await failed.json()
    assert.deepEqual(body, {
      error: 'internal',
      message: 'The request failed on our side.',
      requestId: failed.headers.get('x-plat-request-id'),
    })
  })
})

test('unknown paths, methods, types, encodings and bad JSON have their own status and shape', async () => {
  await serving({ api: echo, limits: { maxBodyBytes: 64 } }, async ({ url }) => {
    const post = (body: string, headers: Record<string, string>) =>
      fetch(`${url}/echo`, { method: 'POST', body, headers })
    const json = { 'content-type': 'application/json' }
    const cases: [string, Response, number, string][] = [
      ['path', await fetch(`${url}/nowhere`), 404, 'not_found'],
      ['method', await fetch(`${url}/echo`), 405, 'method_not_allowed'],
      ['size', await post(`"${'x'.repeat(63)}"`, json), 413, 'body_too_large'],
      ['type', await post('hi', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type'],
      ['encoding', await post('{}', { ...json, 'content-encoding': 'gzip' }), 415, 'unsupported_media_type'],
      ['duplicate', await post('{"a":1,"a":2}', json), 400, 'invalid_request'],
      ['trailing', await post('{} {}', json), 400, 'invalid_request'],
      ['percent', await fetch(`${url}/%ff`), 400, 'invalid_request'],
    ]
    for (const [name, response, status, code] of cases) {
      assert.equal(response.status, status, name)
      const shape = `^{"error":"${code}","message":".+","requestId":"${response.headers.get('x-plat-request-id')}"}$`
      assert.match(await response.text(), new RegExp(shape), name)
    }
    assert.equal((await fetch(`${url}/echo`)).headers.get('allow'), 'POST')
    assert.equal((await post(`"${'x'.repeat(62)}"`, json)).status, 200, 'a body of exactly the limit is accepted')
  })
})

test('a service renders errors in its own shape, including those of the parser', async () => {
  await serving({ renderFault: (fault) => ({ error: fault.message }) }, async ({ url, port }) => {
    assert.deepEqual(await (await fetch(`${url}/x`)).json(), { error: 'There is nothing at this path.' })
    assert.match(await raw(port, 'nonsense\r\n\r\n'), /\{"error":"The request is not well-formed HTTP."\}$/)
  })
})

test('the request id is in the response head, however the head is written', async () => {
  const forms: Readonly<Record<string, (response: ServerResponse) => ServerResponse>> = {
    none: (response) => response,
    status: (response) => response.writeHead(201),
    object: (response) => response.writeHead(201, { 'x-own': 'yes' }),
    list: (response) => response.writeHead(201, ['x-own', 'yes']),
    reason: (response) => response.writeHead(201, 'Made', { 'x-own': 'yes' }),
    before: (response) => response.setHeader('x-own', 'yes').writeHead(201),
  }
  const handle = ({ request, response }: Exchange) => void forms[request.url?.slice(3) ?? '']?.(response).end()
  await serving({ raw: [{ prefix: '/f/', handle }] }, async ({ url }) => {
    for (const form of Object.keys(forms)) {
      const { headers } = await fetch(`${url}/f/${form}`)
      assert.match(headers.get('x-plat-request-id') ?? '', UUID_V7, form)
      const own = form === 'none' || form === 'status' ? null : 'yes'
      assert.equal(headers.get('x-own'), own, form)
    }
  })
})

test('the longest raw prefix wins, other paths go to the API', async () => {
  const route = (prefix: string) => ({
    prefix,
    handle: ({ response, id }: { response: { end(text: string): void }; id: string }) =>
      response.end(`${prefix} ${id}`),
  })
  await serving({ raw: [route('/mcp/'), route('/mcp/deep/')], api: echo }, async ({ url }) => {
    const deep = await fetch(`${url}/mcp/deep/x`)
    assert.equal(await deep.text(), `/mcp/deep/ ${deep.headers.get('x-plat-request-id')}`)
    assert.match(await (await fetch(`${url}/mcp/x`)).text(), /^\/mcp\/ /)
    assert.equal((await fetch(`${url}/mcp`)).status, 404)
    assert.equal((await fetch(`${url}/%6dcp/x`)).status, 404)
    assert.deepEqual(await (await fetch(`${url}/hello`)).json(), { hello: true })
  })
})

test('a raw route that throws answers 500 and the server keeps running', async () => {
  const bad = {
    prefix: '/bad',
    handle: () => {
      throw new Error('broken')
    },
  }
  await serving({ raw: [bad], api: echo }, async ({ url }) => {
    assert.equal((await fetch(`${url}/bad`)).status, 500)
    assert.equal((await fetch(`${url}/hello`)).status, 200)
  })
})

const POST = 'POST /echo HTTP/1.1\r\nHost: localhost\r\n'
test('a head that is too large gets 431, one that does not arrive gets 408', async () => {
  await serving({}, async ({ port }) => {
    const large = `GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ${'a'.repeat(20_000)}\r\n\r\n`
    assert.match(await raw(port, large), /^HTTP\/1\.1 431 /)
  })
  await serving({ limits: { headersMs: 200, checkEveryMs: 50 } }, async ({ port }) => {
    assert.match(await raw(port, 'GET / HTTP/1.1\r\nHost: local'), /^HTTP\/1\.1 408 [\s\S]*"error":"request_timeout"/)
  })
})

test('an API body that does not arrive gets 408', async () => {
  await serving({ api: echo, limits: { headersMs: 200, requestMs: 300, checkEveryMs: 50 } }, async ({ port }) => {
    const answer = await raw(port, `${POST}Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{`)
    assert.match(answer, /^HTTP\/1\.1 408 /)
    assert.equal(answer.split('HTTP/1.1 ').length - 1, 1)
  })
})

test('a web page cannot reach a loopback listener under a foreign host name', async () => {
  await serving({ api: echo, hosts: ['Plat.Example'] }, async ({ port }) => {
    const get = (host: string) => raw(port, `GET /hello HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    for (const host of [
      'localhost',
      `localhost:${port}`,
      '127.0.0.1',
      '[::1]:80',
      'plat.example',
      'PLAT.example:8080',
    ]) {
      assert.match(await get(host), /^HTTP\/1\.1 200 /, host)
    }
    const strange = ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '[::2]', '10.0.0.1']
    for (const host of strange.flatMap((one) => [one, one])) {
      assert.match(await get(host), /^HTTP\/1\.1 403 [\s\S]*"error":"forbidden"/, host)
    }
    assert.match(await raw(port, 'GET /hello HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 403 /)
  })
})

test('a loopback listener refuses an empty Host', async () => {
  await serving({ api: echo }, async ({ port }) => {
    assert.match(await raw(port, 'GET /hello HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 403 /)
    assert.match(await raw(port, 'GET /hello HTTP/1.0\r\nHost:\r\n\r\n'), /^HTTP\/1\.1 403 /)
  })
})

test('CONNECT is refused, and an upgrade request is answered over HTTP/1.1', async () => {
  await serving({ api: echo }, async ({ port }) => {
    const tunnel = await raw(port, 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n')
    assert.match(tunnel, /^HTTP\/1\.1 501 [\s\S]*"error":"not_built"/)
    const head = 'GET /hello HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n'
    assert.match(await raw(port, head), /^HTTP\/1\.1 200 /)
  })
})

test('a body that no handler reads is cut off after the response', async () => {
  const rude = {
    prefix: '/rude',
    handle: ({ response }: { response: { end(text: string): void } }) => response.end('no'),
  }
  await serving({ raw: [rude], limits: { lingerMs: 100 } }, async ({ port }) => {
    const answer = await raw(port, 'POST /rude HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nabc')
    assert.match(answer, /^HTTP\/1\.1 200 /)
  })
})

test('probes answer as documented, and readiness follows the process', async () => {
  let ready = true
  await serving(
    { api: (app) => mountProbes(app, { ready: () => ready, build, metrics: () => 'a 1\n' }) },
    async ({ url }) => {
      assert.deepEqual(await (await fetch(`${url}/healthz`)).json(), { status: 'ok' })
      assert.deepEqual(await (await fetch(`${url}/readyz`)).json(), { status: 'ready' })
      ready = false
      const draining = await fetch(`${url}/readyz`)
      assert.equal(draining.status, 503)
      assert.equal(draining.headers.get('cache-control'), 'no-store')
      assert.deepEqual(await draining.json(), { status: 'shutting down' })
      assert.deepEqual(await (await fetch(`${url}/version`)).json(), build)
      const metrics = await fetch(`${url}/metrics`)
      assert.equal(metrics.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
      assert.equal(await metrics.text(), 'a 1\n')
    },
  )
})

/** Starts a GET; resolves once the response head has arrived. */
async function started(url: string, path: string): Promise<IncomingMessage> {
  const request = httpRequest(`${url}${path}`)
  request.end()
  const [response] = await once(request, 'response')
  return response
}

test('a drain lets responses finish, accepts nothing new, and aborts what exceeds the timeout', async () => {
  const held: { end(text: string): void }[] = []
  const slow = {
    prefix: '/slow',
    handle: ({ response }: { response: { write(text: string): unknown; end(text: string): void } }) => {
      response.write('begun ')
      held.push(response)
    },
  }
  const listener = await listen({ address: '127.0.0.1:0', clock, ids: systemIds(clock), log: silentLog, raw: [slow] })
  const finishing = await started(listener.url, '/slow/a')
  const overstaying = await started(listener.url, '/slow/b')
  const drained = listener.drain(300)
  await assert.rejects(fetch(`${listener.url}/slow/c`))
  held[0]?.end('done')
  let text = ''
  for await (const chunk of finishing) text += chunk
  assert.equal(text, 'begun done')
  await assert.rejects(async () => {
    for await (const _chunk of overstaying);
  }, /aborted/)
  await drained
})

test('errors name a port in use and a malformed address', async () => {
  await serving({}, async ({ port }) => {
    const options = { clock, ids: systemIds(clock), log: silentLog }
    await assert.rejects(
      listen({ ...options, address: `127.0.0.1:${port}` }),
      /Cannot listen on 127\.0\.0\.1:\d+: the port is in use/,
    )
    await assert.rejects(listen({ ...options, address: 'localhost' }), /"localhost" is not an address to listen on/)
  })
})

test('a body is read at its exact limit, and refused above it, encoded, or late', async () => {
  const results: unknown[] = []
  const route = {
    prefix: '/',
    handle: ({ request, response }: { request: IncomingMessage; response: { end(text: string): void } }) => {
      const timeoutMs = request.url === '/late' ? 50 : 60_000
      readBody(request, { maxBytes: 4, timeoutMs, clock }).then((result) => {
        results.push(result instanceof Uint8Array ? Buffer.from(result).toString() : result.why)
        response.end('seen')
      })
    },
  }
  await serving({ raw: [route], limits: { lingerMs: 50 } }, async ({ port }) => {
    const post = (rest: string, path = '/') =>
      raw(port, `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${rest}`)
    await post('Content-Length: 4\r\n\r\nfour')
    await post('Transfer-Encoding: chunked\r\n\r\n2\r\nfo\r\n2\r\nur\r\n0\r\n\r\n')
    await post('Content-Length: 5\r\n\r\n')
    await post('Transfer-Encoding: chunked\r\n\r\n5\r\nfiver\r\n')
    await post('Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx')
    await post('Content-Length: 4\r\n\r\nfo', '/late')
    assert.deepEqual(results, ['four', 'four', 'too_large', 'too_large', 'encoding', 'timeout'])
  })
})

/** Reads each body after `wait`, or at once, and echoes it; `seen` collects the requests. */
function reader(wait: Promise<void> | null) {
  const seen: IncomingMessage[] = []
  const results: string[] = []
  const read = async ({ request, response }: Exchange) => {
    seen.push(request)
    if (wait !== null) await wait
    const result = await readBody(request, { maxBytes: 1_000_000, timeoutMs: 60_000, clock })
    results.push(result instanceof Uint8Array ? Buffer.from(result).toString() : result.why)
    response.end(results.at(-1))
  }
  return { seen, results, raw: [{ prefix: '/', handle: (exchange: Exchange) => void read(exchange) }] }
}

for (const late of [false, true]) {
  test(`bodies that are read ${late ? 'after they arrived' : 'at once'} are complete, one after the other`, async () => {
    const { seen, results, raw: routes } = reader(late ? new Promise((resolve) => setTimeout(resolve, 20)) : null)
    await serving({ raw: routes }, async ({ port }) => {
      const post = (body: string) =>
        `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      const long = 'long '.repeat(40_000)
      const { socket, received } = dial(port)
      socket.write(post('first') + post('') + post('third').slice(0, -2))
      await until(() => seen.length === 3, 'the requests')
      socket.write(`rd${post(long)}`)
      await until(() => results.length === 4, 'the bodies')
      assert.deepEqual(results, ['first', '', 'third', long])
      await until(
        () => seen.every((request) => request.readableEnded && request.destroyed),
        'Node to be done with them',
      )
      socket.end()
      assert.deepEqual((await received).match(/HTTP\/1\.1 200/g)?.length, 4)
    })
  })
}

test('reading ends at once when the client disconnects within the body', async () => {
  const { seen, results, raw: routes } = reader(null)
  await serving({ raw: routes }, async ({ port }) => {
    const { socket } = dial(port)
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf')
    await until(() => seen.length === 1, 'the request')
    socket.destroy()
    await until(() => results.length === 1, 'the end')
    assert.deepEqual(results, ['aborted'])
  })
})

test('a body is complete even when the response was sent before its end', async () => {
  const results: unknown[] = []
  const handle = ({ request, response }: Exchange) => {
    void readBody(request, { maxBytes: 100, timeoutMs: 60_000, clock }).then((result) => results.push(result))
    response.end('early')
  }
  await serving({ raw: [{ prefix: '/', handle }] }, async ({ port }) => {
    const { socket } = dial(port)
    socket.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n')
    await new Promise((resolve) => socket.once('data', resolve))
    await new Promise((resolve) => setImmediate(resolve))
    socket.write('four')
    await until(() => results.length === 1, 'the body')
    assert.deepEqual(results, [Buffer.from('four')])
    socket.destroy()
  })
})

test('pages of a listed origin may call and read responses, other pages are refused', async () => {
  // Shows D3.listen.corsOrigins.
  const origins = new Set(['https://console.example'])
  await serving({ api: echo, origins }, async ({ url }) => {
    const ask = (origin: string, init: RequestInit = {}) =>
      fetch(`${url}/hello`, { ...init, headers: { origin, ...init.headers } })
    const theirs = await ask('https://console.example')
    assert.equal(theirs.status, 200)
    assert.equal(theirs.headers.get('access-control-allow-origin'), 'https://console.example')
    assert.equal(theirs.headers.get('vary'), 'origin')
    assert.match(theirs.headers.get('access-control-expose-headers') ?? '', /x-plat-request-id/)
    const preflight = await ask('https://console.example', {
      method: 'OPTIONS',
      headers: { 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
    })
    assert.equal(preflight.status, 204)
    assert.match(preflight.headers.get('access-control-allow-methods') ?? '', /POST/)
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /authorization/)
    for (const origin of ['https://evil.example', 'null', 'https://console.example.evil', 'http://console.example']) {
      const refused = await ask(origin)
      assert.equal(refused.status, 403, origin)
      assert.equal(refused.headers.get('access-control-allow-origin'), null)
    }
    const plain = await fetch(`${url}/hello`)
    assert.deepEqual([plain.status, plain.headers.get('access-control-allow-origin')], [200, null])
  })
})
