import assert from 'node:assert/strict'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemClock, systemIds, TestClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { silentLog } from '@plat/process'
import { createAuthority } from '@plat/testkit/authority'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import type { Span } from '../spans/span.ts'
import { type CollectorBehavior, startCollector } from '../testing/collector.ts'
import { envelope, spanJson } from './encode.ts'
import { Exporter, QUEUE_MAX_BYTES, TRIES } from './exporter.ts'
import { Collector, type CollectorConfig } from './post.ts'

/** One hour, longer than any pause of an exporter. */
const LONG_MS = 3_600_000

interface Own extends Partial<CollectorConfig> {
  readonly maxQueueSize?: number
  readonly maxExportBatchSize?: number
  readonly exportIntervalMillis?: number
}

/** An exporter whose timers the test advances. */
function exporterTo(t: TestContext, endpoint: string, own: Own = {}) {
  const counted = { exported: 0, dropped: 0, failed: 0, queued: 0 }
  const clock = new TestClock()
  const pauses: number[] = []
  const after = clock.after.bind(clock)
  clock.after = (ms, job) => {
    pauses.push(ms)
    return after(ms, job)
  }
  const dialer = createDialer({ log: silentLog })
  t.after(() => dialer.close())
  const config = {
    ...{ endpoint, jurisdiction: '', headersFile: '', caFile: '', exportTimeoutSeconds: 10 },
    ...{ maxQueueSize: 2048, maxExportBatchSize: 512, exportIntervalMillis: 5000 },
    ...own,
  }
  const exporter = new Exporter({
    config,
    collector: new Collector(config, dialer),
    envelope: envelope({ 'service.name': 'test' }, { name: 'test', version: '1' }),
    clock,
    ids: systemIds(systemClock),
    log: silentLog,
    metrics: {
      exported(spans) {
        counted.exported += spans
      },
      dropped(spans) {
        counted.dropped += spans
      },
      failed(spans) {
        counted.failed += spans
      },
      queued(spans) {
        counted.queued = spans
      },
    },
  })
  t.after(() => exporter.close())
  const add = (count: number, more: Partial<Span> = {}) => {
    for (let at = 0; at < count; at++) exporter.add(spanJson({ ...span, ...more }), `agent${at}`)
  }
  /** Waits until `seen()`, ending every pause. */
  const soon = (seen: () => boolean, what: string) => until(seen, what, () => clock.advance(LONG_MS))
  return { exporter, counted, clock, pauses, add, soon }
}

const span: Span = {
  name: 'n',
  kind: 2,
  traceId: 'a'.repeat(32),
  spanId: 'b'.repeat(16),
  parentSpanId: null,
  traceState: '',
  startedAt: 1_790_000_000_000.25,
  endedAt: 1_790_000_000_001.75,
  attributes: { text: 'a\ud800b', number: 1.5, big: 2 ** 53 - 1, yes: true, list: ['a'], no: undefined },
  dropped: 2,
  events: [{ name: 'e', at: 1_790_000_000_001, attributes: {} }],
  links: [{ traceId: 'c'.repeat(32), spanId: 'd'.repeat(16), state: 's=1' }],
  error: 'why',
}

const says =
  (status: number, headers: Record<string, string> = {}, body = ''): CollectorBehavior =>
  (response) =>
    void response.writeHead(status, headers).end(body)

test('a batch is sent when full or due, and stays within its limits', async (t) => {
  // Shows D3.otel.maxExportBatchSize, D3.otel.exportIntervalMillis, D3.otel.protocol.
  const collector = await startCollector(t)
  const { add, clock, counted } = exporterTo(t, collector.url, { maxExportBatchSize: 3, exportIntervalMillis: 5000 })
  add(2)
  await clock.advance(4999)
  assert.deepEqual([collector.exports.length, counted.queued], [0, 2])
  await clock.advance(1)
  await until(() => counted.exported === 2, 'the first')
  add(7)
  await until(() => counted.exported === 9, 'the others')
  assert.deepEqual(
    collector.exports.map(({ spans }) => spans.length),
    [2, 3, 3, 1],
  )
  const [seen] = collector.spans
  assert.ok(seen !== undefined)
  assert.deepEqual(seen.attributes, { text: 'a\ufffdb', number: 1.5, big: 2 ** 53 - 1, yes: true, list: ['a'] })
  const { startTimeUnixNano, endTimeUnixNano, droppedAttributesCount, status } = seen
  assert.deepEqual(
    { startTimeUnixNano, endTimeUnixNano, droppedAttributesCount, status },
    {
      startTimeUnixNano: '1790000000000250000',
      endTimeUnixNano: '1790000000001750000',
      droppedAttributesCount: 2,
      status: { code: 2, message: 'why' },
    },
  )
})

test('spans beyond the queue limits of number and size are dropped and counted', async (t) => {
  // Shows D3.otel.maxQueueSize.
  const collector = await startCollector(t)
  const { add, counted, soon } = exporterTo(t, collector.url, { maxQueueSize: 4, maxExportBatchSize: 4 })
  collector.answers(() => {})
  add(4)
  await until(() => collector.exports.length === 1, 'a request without a response')
  add(6)
  assert.deepEqual([counted.queued, counted.dropped], [4, 2])
  const large = exporterTo(t, collector.url)
  large.add(20, { attributes: { text: 'x'.repeat(QUEUE_MAX_BYTES / 16) } })
  assert.equal(large.counted.dropped, 5)
  await large.soon(() => large.counted.exported === 15, 'the large ones')
  assert.ok(collector.exports.length >= 15, 'a large span has a separate request')
  await collector.close()
  await soon(() => counted.failed === 8, 'the others to be dropped')
})

test('an agent whose spans fill its share loses further ones, while spans of another agent are kept', async (t) => {
  const collector = await startCollector(t)
  const { exporter, counted, soon } = exporterTo(t, collector.url, { maxQueueSize: 8, maxExportBatchSize: 8 })
  const add = (agent: string, text = 'x') => exporter.add(spanJson({ ...span, attributes: { text } }), agent)
  for (let n = 0; n < 5; n++) add('greedy')
  add('modest')
  assert.deepEqual([counted.queued, counted.dropped], [3, 3])
  await soon(() => counted.exported === 3, 'the spans')
  for (const _ of [1, 2]) add('greedy')
  assert.deepEqual([counted.queued, counted.dropped], [2, 3], 'exported spans free their places')
  await soon(() => counted.exported === 5, 'the others')
  add('greedy', 'x'.repeat(QUEUE_MAX_BYTES / 4))
  assert.equal(counted.dropped, 4, 'a span larger than a share')
  const half = 'x'.repeat(QUEUE_MAX_BYTES / 8)
  for (const agent of ['greedy', 'greedy', 'modest']) add(agent, half)
  assert.deepEqual(
    [counted.queued, counted.dropped],
    [2, 5],
    'the bytes of a share are used up, those of others are not',
  )
})

test('exports to a busy or unreachable collector are retried, with Retry-After, until the spans are dropped', async (t) => {
  // Shows D3.metric.plat_gateway_otel_spans_failed_total.
  const collector = await startCollector(t)
  const { add, pauses, counted, soon } = exporterTo(t, collector.url)
  collector.answers(says(429, { 'retry-after': '120' }), says(503))
  add(1)
  await soon(() => counted.exported === 1, 'the third try')
  assert.deepEqual([collector.exports.length, counted.failed], [3, 0])
  const [, first = 0, second = 0] = pauses
  assert.ok(first === 120_000 && second >= 1000 && second <= 2000, pauses.join())
  collector.answers(...Array.from({ length: TRIES }, () => says(502)))
  add(2)
  await soon(() => counted.failed === 2, 'the spans to be dropped')
  assert.equal(collector.exports.length, 3 + TRIES)
  collector.answers(says(400))
  add(3)
  await soon(() => counted.failed === 5, 'the refused ones')
  assert.equal(collector.exports.length, 4 + TRIES)
  add(1)
  await soon(() => counted.exported === 2, 'the next one')
})

test('rejected spans of a partial success are counted as failed, and not sent again', async (t) => {
  const collector = await startCollector(t)
  const { add, counted, soon } = exporterTo(t, collector.url)
  const partial = JSON.stringify({ partialSuccess: { rejectedSpans: '2', errorMessage: 'too old' } })
  collector.answers(says(200, { 'content-type': 'application/json' }, partial))
  add(5)
  await soon(() => counted.exported === 3, 'the three')
  assert.deepEqual([counted.failed, collector.exports.length], [2, 1])
})

test('after a timeout the same spans are sent again', async (t) => {
  // Shows D3.otel.exportTimeoutSeconds.
  const collector = await startCollector(t)
  const { add, counted, soon } = exporterTo(t, collector.url, { exportTimeoutSeconds: 1 })
  collector.answers(() => {})
  add(1)
  await soon(() => counted.exported === 1, 'the second try')
  // There may be more on a machine that takes over a second for a response.
  assert.ok(collector.exports.length >= 2)
})

test('headers and authorities are read for each export, and without them nothing is sent', async (t) => {
  // Shows D3.otel.headersFile, D3.otel.caFile.
  const dir = tempFolder()
  const [headersFile, caFile] = [join(dir, 'headers'), join(dir, 'ca.pem')]
  const authority = await createAuthority({ name: 'root', now: Date.now() })
  const leaf = await authority.issue({ name: 'collector', dnsNames: ['localhost'], extKeyUsage: ['1.3.6.1.5.5.7.3.1'] })
  const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' })
  const collector = await startCollector(t, { key, cert: leaf.pem })
  const url = `${collector.url.replace('127.0.0.1', 'localhost')}/base/`
  const { add, counted, soon } = exporterTo(t, url, { headersFile, caFile })
  add(1)
  await soon(() => counted.failed === 1, 'the span without headers')
  const put = async (path: string, text: string) => {
    await writeFile(`${path}.new`, text)
    await rename(`${path}.new`, path)
  }
  await put(headersFile, 'Authorization: Bearer one\n')
  await put(caFile, (await createAuthority({ name: 'another', now: Date.now() })).pem)
  add(1)
  await soon(() => counted.failed === 2, 'the span for an untrusted server')
  assert.equal(collector.exports.length, 0)
  await put(caFile, authority.pem)
  add(1)
  await soon(() => counted.exported === 1, 'the span with both')
  await put(headersFile, 'authorization: Bearer two\nx-scope: a\n')
  add(1)
  await soon(() => counted.exported === 2, 'the next span')
  await put(headersFile, 'host: elsewhere\n')
  add(1)
  await soon(() => counted.failed === 3, 'the span with a forbidden header')
  assert.deepEqual(
    collector.exports.map(({ path, headers }) => [path, headers.authorization, headers['x-scope']]),
    [
      ['/base/v1/traces', 'Bearer one', undefined],
      ['/base/v1/traces', 'Bearer two', 'a'],
    ],
  )
})

test('waiting spans are sent at shutdown, and later ones are dropped', async (t) => {
  const collector = await startCollector(t)
  const { exporter, add, counted } = exporterTo(t, collector.url, { maxExportBatchSize: 2 })
  add(1)
  await exporter.close()
  add(1)
  assert.deepEqual([collector.spans.length, counted.exported, counted.dropped], [1, 1, 1])
})
