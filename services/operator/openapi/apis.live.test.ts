import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import { TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { type Manifest, parseResource } from '@plat/resources'
import { listening } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import type { ReferencedTexts } from '../render/declared.ts'
import { renderUpstreams } from '../render/upstreams.ts'
import { Apis } from './apis.ts'

const documentOf = (...names: readonly string[]) =>
  JSON.stringify({
    openapi: '3.1.0',
    paths: Object.fromEntries(names.map((name) => [`/${name}`, { get: { operationId: name, responses: {} } }])),
  })

function server(openapi: object, name = 'a'): Manifest<'MCPServer'> {
  const metadata = { name, namespace: 'default' }
  const object = {
    apiVersion: 'plat.dev/v1alpha1',
    kind: 'MCPServer',
    metadata,
    spec: { url: 'http://a.example', openapi },
  }
  const { object: read, problems } = parseResource('MCPServer', JSON.stringify(object))
  return read ?? assert.fail(problems.join())
}

const texts = (entries: Readonly<Record<string, string>> = {}): ReferencedTexts => ({
  texts: new Map(Object.entries(entries)),
  withheld: new Map(),
})

/** Documents with a clock, and a server for URLs whose response can be changed. */
async function setUp(t: TestContext) {
  const noHeaders: object = {}
  const web = { status: 200, body: documentOf('one'), requests: 0, headers: noHeaders }
  const http = createServer((request, response) => {
    web.requests++
    web.headers = request.headers
    response.writeHead(web.status, { location: '/elsewhere' }).end(web.body)
  })
  const port = await listening(http)
  const url = `http://127.0.0.1:${port}/openapi.json`
  const clock = new TestClock()
  const dialer = createDialer({ log: silentLog })
  let changes = 0
  const apis = new Apis({ dialer, clock, log: silentLog, onChange: () => void changes++ })
  t.after(() => {
    apis.close()
    dialer.close()
    http.close()
  })
  const resultOf = (one: Manifest<'MCPServer'>, given = texts()) => {
    const result = apis.current([one], given).get('default/a') ?? assert.fail('no result')
    return 'tools' in result ? result.tools.map(({ name }) => name) : `${result.field}: ${result.why}`
  }
  return { apis, web, url, clock, resultOf, changes: () => changes }
}

test('a URL is read without credentials and redirects, again after 10 minutes, and its tools stay while it fails', async (t) => {
  // Shows D2.server.openapi.documentURL.
  const { apis, web, url, clock, resultOf, changes } = await setUp(t)
  const one = server({ documentURL: url })
  web.status = 302
  assert.equal(resultOf(one), 'documentURL: is being read')
  await apis.settled(10_000)
  assert.equal(resultOf(one), 'documentURL: cannot be read: it answered 302; redirects are not followed')
  web.status = 200
  clock.advance(30_000)
  await until(() => Array.isArray(resultOf(one)), 'the tools')
  assert.deepEqual([resultOf(one), web.requests, changes()], [['one'], 2, 2])
  assert.ok(!('authorization' in web.headers))
  web.body = documentOf('one', 'two')
  clock.advance(600_000)
  await until(() => resultOf(one).length === 2, 'the new tools')
  web.body = 'nothing'
  clock.advance(600_000)
  await until(() => web.requests === 4, 'the request')
  await apis.settled(10_000)
  assert.deepEqual(resultOf(one), ['one', 'two'])
})

test('a changed ConfigMap keeps its tools until it is read, and other rules do not', async (t) => {
  // Shows D2.server.openapi.source.
  const { apis, resultOf } = await setUp(t)
  const configMapRef = { name: 'c', key: 'k' }
  const one = server({ configMapRef })
  const given = (...names: readonly string[]) => texts({ 'default/c/k': documentOf(...names) })
  assert.equal(resultOf(one), 'configMapRef: ConfigMap default/c/k cannot be read')
  resultOf(one, given('one', 'two'))
  await apis.settled(10_000)
  assert.deepEqual(resultOf(one, given('one')), ['one', 'two'])
  await apis.settled(10_000)
  assert.deepEqual(resultOf(one, given('one')), ['one'])
  const narrower = server({ configMapRef, allow: [{ operationId: 'two' }] })
  assert.equal(resultOf(narrower, given('one')), 'configMapRef: is being read')
})

test('a namespace has at most 32 such servers, and a server without tools is refused', async (t) => {
  // Shows D2.server.openapi.unreadable and D2.server.openapi.file.
  const { apis } = await setUp(t)
  const servers = Array.from({ length: 33 }, (_, at) => server({ inline: documentOf('x') }, `s${at}`))
  const problems = [...apis.current(servers, texts()).values()].filter((one) => 'why' in one && one.field === '')
  assert.equal(problems.length, 1)
  await apis.settled(20_000)
  const none = { agents: [], policies: [], budgets: [], memory: [], sovereignty: [], tiers: [], cedar: null }
  const declared = { ...none, servers, currency: 'USD', bundles: texts(), apis: apis.current(servers, texts()) }
  const { file, refused } = renderUpstreams({ ...declared, home: null })
  assert.equal(Object.keys(file.servers).length, 32)
  assert.equal(file.servers['default/s0']?.api?.tools[0]?.name, 'x')
  assert.match(refused.join(), /^MCPServer default\/s9 openapi: the namespace has more than 32 servers with openapi$/)
  const onCluster = renderUpstreams({ ...declared, servers: [server({ file: 'a.json' })], home: 'plat-system' })
  assert.match(onCluster.refused[0] ?? '', /openapi\.file: is read by plat up only: on a cluster use configMapRef$/)
})
