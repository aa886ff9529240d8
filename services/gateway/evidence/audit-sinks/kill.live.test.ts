import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { act } from '../../testing/acting.ts'
import { started, TOKEN } from '../../testing/started.ts'
import { startHttpReceiver, startSyslogReceiver } from './testing/servers.ts'

const BATCH = 10

/** Asserts that every line came in order; repeated lines are adjacent and of one batch. */
function assertStreamed(got: readonly string[], lines: readonly string[], restarts: number): void {
  const first = got.filter((line, index) => got.indexOf(line) === index)
  assert.deepEqual(first, lines)
  assert.ok(got.length - first.length <= BATCH * restarts, `${got.length - first.length} came twice`)
}

test('a gateway killed during deliveries loses no record, and repeats at most the last batch', async (t) => {
  // Shows D3.audit.auditSinks, D3.event.sinksStreamed, D3.auditSinks.name, D3.auditSinks.pollIntervalMillis,
  // D3.metric.plat_gateway_audit_sink_lag, D3.metric.plat_gateway_audit_sink_delivered_total,
  // D3.metric.plat_gateway_audit_sink_errors_total.
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const [http, syslog, down] = [await startHttpReceiver(t), await startSyslogReceiver(t), await startHttpReceiver(t)]
  down.answers = () => ({ status: 503 })
  const own = { batchSize: BATCH, pollIntervalMillis: 5 }
  const auditSinks = [
    { name: 'collector', type: 'http', url: `${http.url}/in`, format: 'json', ...own },
    { name: 'syslog', type: 'syslog', address: `tcp://127.0.0.1:${syslog.port}`, ...own },
    { name: 'down', type: 'http', url: down.url, format: 'json', ...own },
  ]
  const start = () =>
    startGatewayProcess({
      servers: { notes: 'http://127.0.0.1:9' },
      config: { auditPath, auditSinks },
      env: { PLAT_ADMIN_TOKEN: TOKEN },
    })
  const received = () => http.posted.flatMap(({ body }) => body.split('\n').slice(0, -1))
  const syslogged = () => syslog.messages.map(({ message }) => message)
  const KILLS = 2
  for (let kill = 1; kill <= KILLS; kill++) {
    const gateway = await start()
    const acting = act(gateway)
    const [before, beforeSyslog] = [received().length, syslogged().length]
    await until(() => received().length > before + 40 && syslogged().length > beforeSyslog + 40, 'records')
    await gateway.kill()
    await acting
    await gateway.close()
  }
  const last = await start()
  const lines = () => wholeLines(auditPath)
  await until(() => received().at(-1) === lines().at(-1) && syslogged().at(-1) === lines().at(-1), 'the last record')
  const isExposed = async (...series: readonly RegExp[]) => {
    const metrics = await (await fetch(`${last.url}/metrics`)).text()
    return series.every((one) => one.test(metrics))
  }
  // The lag is updated once per second.
  await until(
    () =>
      isExposed(
        /^plat_gateway_audit_sink_lag\{sink="collector"\} 0$/m,
        /^plat_gateway_audit_sink_delivered_total\{sink="collector"\} [1-9]\d*$/m,
        /^plat_gateway_audit_sink_errors_total\{sink="down"\} [1-9]\d*$/m,
        new RegExp(`^plat_gateway_audit_sink_lag\\{sink="down"\\} ${lines().length}$`, 'm'),
      ),
    'the series of the sinks',
  )
  // Records that waited while the receiver was down are delivered too.
  down.posted.length = 0
  down.answers = () => ({ status: 200 })
  const late = () => down.posted.flatMap(({ body }) => body.split('\n').slice(0, -1))
  await until(() => late().length >= lines().length, 'what has waited')
  await last.close()
  assertStreamed(received(), lines(), KILLS)
  assertStreamed(syslogged(), lines(), KILLS)
  assertStreamed(late(), lines(), 0)
})

test('a gateway does not start if a sink has the cursor of another ledger', async (t) => {
  const dir = tempFolder()
  const sink = { name: 'file', type: 'jsonl', path: join(dir, 'copy.jsonl') }
  const start = (auditPath: string) => started(t, { auditPath, auditSinks: [sink] }, true)
  const [one, other] = [join(dir, 'one.jsonl'), join(dir, 'other.jsonl')]
  for (const path of [one, other]) await (await start(path)).gateway.drain()
  await cp(`${one}.sinks`, `${other}.sinks`, { recursive: true })
  await assert.rejects(start(other), /^Error: auditSinks "file": .*does not hold record/)
})
