import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { createReceiver } from './receivers/receivers.ts'
import { setUpSinks, sinkConfig } from './testing/fixture.ts'
import { startRsyslog } from './testing/rsyslog.ts'
import { certificates } from './testing/servers.ts'

for (const protocol of ['tcp', 'tls'] as const) {
  test(`rsyslog receives every record over ${protocol}, also those written while it was down`, async (t) => {
    const { ca, tls } = await certificates()
    const rsyslog = await startRsyslog(t, protocol === 'tls' ? { ca, cert: String(tls.cert), key: tls.key } : null)
    const fixture = await setUpSinks(t)
    const dialer = createDialer({ log: silentLog })
    t.after(() => dialer.close())
    const caFile = join(tempFolder(), 'ca.pem')
    await writeFile(caFile, ca)
    const trust = protocol === 'tls' ? { caFile, serverName: 'siem.example' } : {}
    const config = sinkConfig({ type: 'syslog', address: `${protocol}://127.0.0.1:${rsyslog.port}`, ...trust })
    const none = () => Promise.reject(new Error('none'))
    const clouds = { aws: none, azure: none, gcp: none }
    const receiver = createReceiver(config, { dialer, clock: systemClock, clouds })
    const { counted } = await fixture.sink(receiver, { batchSize: 20 })
    const first = await fixture.fill(100)
    await until(() => counted.limit === first + 1, 'the first records')
    await until(() => rsyslog.lines().length === first + 1, 'rsyslog to write')
    await rsyslog.kill()
    const last = await fixture.fill(100)
    await until(() => counted.failures > 0, 'a failure')
    await rsyslog.start()
    await until(() => counted.limit >= last + 1, 'the others')
    await until(() => rsyslog.lines().length >= last + 1, 'rsyslog to write again')
    const received = rsyslog.lines().map((line) => /^\[plat@32473 seq="(\d+)" hash="([0-9a-f]{64})"\] (.*)$/.exec(line))
    assert.deepEqual(
      received.map((found) => found?.[3]),
      fixture.lines(),
    )
    assert.deepEqual(
      received.map((found) => found?.[2]),
      fixture.lines().map((line) => JSON.parse(line).hash),
    )
  })
}
