import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { formatProblem, MAX_WATCHED_BYTES } from '@plat/config'
import { systemClock, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { createAuthority } from '@plat/testkit/authority'
import { KubernetesApiServer } from '@plat/testkit/kubernetes/api-server'
import { tempFolder } from '@plat/testkit/local'
import { checkGatewayConfig, typedConfig } from '../../config.ts'
import { recordedMetrics, testMetrics } from '../../testing/metrics.ts'
import { openConfigSync } from './index.ts'

const MAP = '/api/v1/namespaces/plat-system/configmaps/plat-policies'
const POLL_MS = 1000

const least = {
  auditPath: '/audit.jsonl',
  identity: { publicKeyFiles: ['/pub.pem'] },
  policyFile: '/policies.json',
  upstreamsFile: '/upstreams.json',
}

function checked(configSync: object) {
  return checkGatewayConfig(JSON.stringify({ ...least, configSync }), { exists: () => true })
}

/** The feature with a small API server. */
async function setUp(t: TestContext, options: { readonly optional?: boolean; readonly env?: object } = {}) {
  const { optional = false, env = { POD_NAMESPACE: 'plat-system' } } = options
  const dir = tempFolder()
  const server = new KubernetesApiServer()
  await server.start()
  t.after(() => server.stop())
  const tokenFile = join(dir, 'token')
  await writeFile(tokenFile, 'secret-token\n')
  const file = join(dir, 'config/policies.json')
  const items = [{ configMap: 'plat-policies', key: 'policies.json', path: file, optional }]
  const { config } = typedConfigOf({ enabled: true, apiServer: server.url, tokenFile, items })
  const clock = new TestClock()
  const counted: string[] = []
  const { metrics } = recordedMetrics((name, change) => {
    const [configMap, at] = change.split(' ')
    const result = name.includes('errors') ? 'failed' : at === String(clock.now() / 1000)
    counted.push(`${configMap} ${result}`)
  })
  const warned: string[] = []
  const dialer = createDialer({ clock, log: silentLog })
  t.after(() => dialer.close())
  const open = async () => {
    const sync = await openConfigSync({
      config,
      env: { ...env },
      dialer,
      clock,
      log: { ...silentLog, warn: (fields, message) => void warned.push(`${message} ${JSON.stringify(fields)}`) },
      metrics,
    })
    t.after(() => sync?.close())
    return sync
  }
  /** Runs one interval and waits until its round ends. */
  const round = async () => {
    const before = counted.length
    await clock.advance(POLL_MS)
    while (counted.length === before) await new Promise((done) => setImmediate(done))
  }
  const say = (data: object, more: object = {}) => server.put(MAP, { data, ...more })
  return { server, file, open, round, say, counted, warned, read: () => readFile(file, 'utf8') }
}

function typedConfigOf(configSync: object) {
  const { config, problems } = checked(configSync)
  assert.deepEqual(problems.map(formatProblem), [])
  return { config: typedConfig(config) }
}

test('files exist before they are first read, and follow their ConfigMap', async (t) => {
  // Shows D3.state.configSync.enabled, D3.state.configSync.namespace, D3.state.configSync.pollMillis, D3.state.configSync.apiServer,
  // D3.state.configSync.tokenFile, D3.state.configSync.items, D3.default.computed.configSync.namespace.
  const { server, open, round, say, read, counted } = await setUp(t)
  say({ 'policies.json': 'one' })
  await open()
  assert.equal(await read(), 'one')
  say({ 'policies.json': 'two' })
  await round()
  assert.equal(await read(), 'two')
  say({}, { binaryData: { 'policies.json': Buffer.from([0, 255]).toString('base64') } })
  await round()
  assert.equal(await read(), '\u0000\ufffd')
  assert.deepEqual(counted, ['plat-policies true', 'plat-policies true', 'plat-policies true'])
  assert.deepEqual([...new Set(server.seen)], [`GET ${MAP}`])
})

test('a compressed key is written decompressed, and one that is damaged or too large leaves the file as it was', async (t) => {
  const { open, round, say, read, warned, counted } = await setUp(t)
  const packed = (bytes: Buffer) => say({}, { binaryData: { 'policies.json.gz': bytes.toString('base64') } })
  packed(gzipSync('one'))
  await open()
  assert.equal(await read(), 'one')
  await round()
  packed(Buffer.from('no gzip'))
  await round()
  packed(gzipSync(Buffer.alloc(MAX_WATCHED_BYTES + 1)))
  await round()
  assert.equal(await read(), 'one')
  assert.match(
    warned.join('\n'),
    /policies\.json\.gz: it is not valid gzip[\s\S]*policies\.json\.gz: it has more than 67108864 bytes/,
  )
  assert.deepEqual(counted.slice(2), ['plat-policies failed', 'plat-policies failed'])
  say({ 'policies.json': 'two' })
  await round()
  assert.equal(await read(), 'two')
})

test('a ConfigMap that becomes unreadable leaves its files unchanged, is counted, and is logged once', async (t) => {
  // Shows D3.metric.plat_gateway_configsync_last_success_timestamp_seconds and D3.metric.plat_gateway_configsync_errors_total.
  const { server, open, round, say, read, counted, warned } = await setUp(t)
  say({ 'policies.json': 'one' })
  await open()
  server.faults.push({ request: /./, status: 503, reason: 'ServiceUnavailable' })
  await round()
  await round()
  server.faults.length = 0
  server.remove(MAP)
  await round()
  say({ 'other.json': 'x' })
  await round()
  assert.equal(await read(), 'one')
  assert.deepEqual(counted.slice(1), Array(4).fill('plat-policies failed'))
  assert.equal(warned.length, 3)
  assert.match(warned.at(1) ?? '', /there is no such ConfigMap/)
  assert.match(warned.at(2) ?? '', /it has no key policies\.json/)
  assert.ok(!warned.join().includes('secret-token'))
  say({ 'policies.json': 'two' })
  await round()
  assert.equal(await read(), 'two')
})

test('a gateway starts without a required ConfigMap only if an earlier run has left its files', async (t) => {
  const { open, say, file, read, round } = await setUp(t)
  await assert.rejects(
    open(),
    /^Error: configSync: ConfigMap plat-policies: there is no such ConfigMap; and there is no .*policies\.json/,
  )
  say({ 'policies.json': 'one' })
  const earlier = await open()
  await earlier?.close()
  await writeFile(file, 'kept')
  const later = await setUp(t)
  later.server.faults.push({ request: /./, status: 500, reason: 'InternalError' })
  await assert.rejects(later.open(), /there is no .* from an earlier run/)
  say({})
  await open()
  assert.equal(await read(), 'kept')
  say({ 'policies.json': 'three' })
  await round()
  assert.equal(await read(), 'three')
})

test('the file of an optional item is removed with its key, and with its ConfigMap', async (t) => {
  const { server, open, round, say, file, read, counted } = await setUp(t, { optional: true })
  await open()
  assert.ok(!existsSync(file))
  say({ 'policies.json': 'one' })
  await round()
  assert.equal(await read(), 'one')
  say({})
  await round()
  assert.ok(!existsSync(file))
  say({ 'policies.json': 'two' })
  await round()
  server.remove(MAP)
  await round()
  assert.ok(!existsSync(file))
  assert.ok(counted.every((line) => line.endsWith('true')))
})

test('a missing namespace, API server or token is an error that names it', async (t) => {
  const { open } = await setUp(t, { env: {} })
  await assert.rejects(open(), /^Error: configSync\.namespace: required where POD_NAMESPACE is not set$/)
  const { config } = typedConfigOf({ enabled: true, items: [{ configMap: 'a', key: 'b', path: '/c' }] })
  const clock = new TestClock()
  const dialer = createDialer({ clock, log: silentLog })
  const parts = { config, env: {}, dialer, clock, log: silentLog, metrics: testMetrics() }
  await assert.rejects(openConfigSync(parts), /^Error: configSync: not in a cluster: /)
})

test('an API server is verified by the authorities of caFile, and by no others', async (t) => {
  // Shows D3.state.configSync.caFile.
  const authority = await createAuthority({ name: 'cluster', now: systemClock.now() })
  const { pem: cert, privateKey } = await authority.issue({ name: 'localhost', dnsNames: ['localhost'] })
  const server = new KubernetesApiServer({ cert, key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) })
  await server.start()
  t.after(() => server.stop())
  server.put(MAP, { data: { 'policies.json': 'one' } })
  const dir = tempFolder()
  const [tokenFile, caFile, file] = [join(dir, 'token'), join(dir, 'ca.pem'), join(dir, 'policies.json')]
  await writeFile(tokenFile, 'secret-token')
  await writeFile(caFile, authority.pem)
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  const open = async (own: object) => {
    const items = [{ configMap: 'plat-policies', key: 'policies.json', path: file }]
    const { config } = typedConfigOf({ enabled: true, apiServer: server.url, tokenFile, items, ...own })
    const env = { POD_NAMESPACE: 'plat-system' }
    const parts = { config, env, dialer, clock: systemClock, log: silentLog, metrics: testMetrics() }
    const sync = await openConfigSync(parts)
    await sync?.close()
  }
  await assert.rejects(
    open({}),
    /^Error: configSync: ConfigMap plat-policies: the API server cannot be reached: .*certificate/,
  )
  await open({ caFile })
  assert.equal(await readFile(file, 'utf8'), 'one')
})

test('paths that two items would write, or that depend on the working folder, are refused', () => {
  const item = { configMap: 'a', key: 'b', path: '/etc/plat/x.json' }
  const items = [item, { ...item, path: '/etc/plat/./x.json' }, { ...item, path: 'x.json' }]
  assert.deepEqual(checked({ enabled: true, items }).problems.map(formatProblem), [
    'configSync.items[1].path: is written by an item before this one',
    'configSync.items[2].path: must be absolute',
  ])
  assert.deepEqual(checked({ enabled: true }).problems.map(formatProblem), [
    'warning: configSync.items: nothing is read: name what',
  ])
})
