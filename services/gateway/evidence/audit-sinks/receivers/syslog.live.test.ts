import assert from 'node:assert/strict'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import type { SinkConfig } from '../config.ts'
import { recordOf, setUpSinks, sinkConfig } from '../testing/fixture.ts'
import { certificates, startSyslogReceiver } from '../testing/servers.ts'
import { createReceiver } from './receivers.ts'

function receiver(t: TestContext, own: Partial<SinkConfig>) {
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  const none = () => Promise.reject(new Error('none'))
  const clouds = { aws: none, azure: none, gcp: none }
  return createReceiver(sinkConfig({ type: 'syslog', timeoutSeconds: 60, ...own }), {
    dialer,
    clock: systemClock,
    clouds,
  })
}

const items = (to: ReturnType<typeof receiver>, count: number) =>
  Array.from({ length: count }, (_, seq) => recordOf({ kind: 'outcome', tool: `größe ${seq}` }, seq)).map((record) => ({
    record,
    text: to.write(record),
  }))

test('records come over tcp as length-prefixed messages, and count once the receiver has read them', async (t) => {
  // Shows D3.auditSinks.type.syslog, D3.auditSinks.address, D3.auditSinks.format.default.
  const server = await startSyslogReceiver(t)
  const to = receiver(t, { address: `tcp://127.0.0.1:${server.port}` })
  const batch = items(to, 50)
  assert.deepEqual(await to.deliver(batch), { kind: 'accepted' })
  assert.deepEqual(
    server.messages.map(({ message }) => message),
    batch.map(({ record }) => record.text),
  )
  assert.deepEqual(server.messages[3]?.data?.params.seq, '3')
})

test('over tls both sides present a certificate, and a rotated one applies without a restart', async (t) => {
  // Shows D3.auditSinks.caFile, D3.auditSinks.certFile, D3.auditSinks.keyFile, D3.auditSinks.serverName.
  const { ca, client, tls } = await certificates()
  const server = await startSyslogReceiver(t, tls)
  const dir = tempFolder()
  const files = { caFile: join(dir, 'ca.pem'), certFile: join(dir, 'crt.pem'), keyFile: join(dir, 'key.pem') }
  await Promise.all([
    writeFile(files.caFile, ca),
    writeFile(files.certFile, client.cert),
    writeFile(files.keyFile, client.key),
  ])
  const address = `tls://127.0.0.1:${server.port}`
  const to = receiver(t, { address, serverName: 'siem.example', ...files })
  const batch = items(to, 30)
  assert.deepEqual(await to.deliver(batch), { kind: 'accepted' })
  assert.equal(server.messages.length, 30)
  const wrongName = receiver(t, { address, serverName: 'other.example', ...files })
  await assert.rejects(wrongName.deliver(batch), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  const { certFile: _, keyFile: __, ...anonymous } = files
  const unauthenticated = receiver(t, { address, serverName: 'siem.example', ...anonymous })
  assert.equal((await unauthenticated.deliver(batch).catch(() => ({ kind: 'rejected' }))).kind === 'accepted', false)
  const strangers = await certificates()
  await writeFile(files.caFile, strangers.ca)
  await assert.rejects(to.deliver(batch))
  await rm(files.caFile)
  await assert.rejects(to.deliver(batch), /^Unusable|^Error: caFile: .*ca\.pem is missing/)
  await writeFile(files.caFile, ca)
  assert.deepEqual(await to.deliver(batch), { kind: 'accepted' })
  assert.equal(server.messages.length, 60)
})

test('a delivery fails if the receiver closes early or never closes', async (t) => {
  // Shows D3.auditSinks.timeoutSeconds.
  const server = await startSyslogReceiver(t)
  const to = receiver(t, { address: `tcp://127.0.0.1:${server.port}`, timeoutSeconds: 1 })
  const batch = items(to, 2000)
  server.behaves = 'closes at once'
  assert.equal((await to.deliver(batch)).kind, 'failed')
  server.behaves = 'never closes'
  const late = await to.deliver(items(to, 1))
  assert.equal(late.kind, 'failed')
  assert.ok(late.kind === 'failed' && late.reason.includes('has not closed the connection'))
})

test('while a syslog server is away no record is lost, and all are delivered in order afterwards', async (t) => {
  const fixture = await setUpSinks(t)
  const server = await startSyslogReceiver(t)
  server.behaves = 'closes at once'
  const { counted } = await fixture.sink(receiver(t, { address: `tcp://127.0.0.1:${server.port}` }), { batchSize: 7 })
  const last = await fixture.fill(30)
  await until(() => counted.failures > 0, 'a failure')
  assert.equal(server.messages.length, 0)
  server.behaves = 'well'
  await until(() => counted.limit === last + 1, 'all records')
  assert.deepEqual(
    server.messages.map(({ message }) => message),
    fixture.lines(),
  )
})
