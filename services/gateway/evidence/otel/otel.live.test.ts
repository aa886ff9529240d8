import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { json } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import type { ReceivedSpan } from './testing/collector.ts'
import { ANSWER, CALLER, startFixture, type TelemetryFixture, TRACE } from './testing/fixture.ts'

const FROM_CALLER = { traceparent: `00-${TRACE}-${CALLER}-01`, tracestate: 'vendor=x' }

function kinds(spans: readonly ReceivedSpan[]): {
  readonly server: ReceivedSpan
  readonly client: ReceivedSpan | undefined
} {
  const server = spans.find(({ kind }) => kind === 2)
  assert.ok(server !== undefined)
  return { server, client: spans.find(({ kind }) => kind === 3) }
}

/** Waits for the record of a call. */
async function recordOf({ gateway }: TelemetryFixture, call: string) {
  const own = async () =>
    (await gateway.ledger()).map((line) => JSON.parse(line).rec).filter((rec) => rec.call === call)
  await until(async () => (await own()).some(({ kind }) => kind !== 'intent'), 'the record')
  return await own()
}

test('traces of calls', async (t) => {
  // Shows D3.otel.enabled, D3.otel.endpoint, D3.otel.resourceAttributes, D3.otel.serviceName, D3.otel.recordArgs, D3.otel.recordUser.
  // Shows D3.metric.mcp_server_operation_duration_seconds, D3.metric.plat_gateway_otel_spans_exported_total
  // and D3.metric.plat_gateway_otel_queue_length.
  const fixture = await startFixture(t, { resourceAttributes: { 'deployment.environment.name': 'test' } })
  await t.test('continue the trace of a caller, up to the server', (one) => goesOn(one, fixture))
  await t.test('begin with the id of the call if the caller has none', (one) => begins(one, fixture))
  await t.test('prefer the parent in the message to that in its headers', (one) => fromMessage(one, fixture))
  await t.test('contain refusals, and errors of tools', (one) => containErrors(one, fixture))
  await t.test('are exported only if the caller samples them', (one) => unsampled(one, fixture))
  await t.test('are counted in metrics of the conventions', (one) => counts(one, fixture))
})

test('spans dropped by a full queue are counted in /metrics', async (t) => {
  // Shows D3.metric.plat_gateway_otel_spans_dropped_total.
  const { call, metrics } = await startFixture(t, {
    maxQueueSize: 1,
    maxExportBatchSize: 1,
    exportIntervalMillis: 60_000,
  })
  const dropped = async () => Number(/^plat_gateway_otel_spans_dropped_total (\d+)$/m.exec(await metrics())?.[1] ?? 0)
  await until(
    async () => (await dropped()) > 0,
    'a dropped span',
    async () => void (await call()),
  )
})

async function goesOn(_: TestContext, fixture: TelemetryFixture) {
  const { collector, notes } = fixture
  const { decision } = await fixture.call({ args: { to: 'somebody' }, headers: FROM_CALLER })
  const { server, client } = kinds(await collector.trace(TRACE, 2))
  assert.ok(client !== undefined)
  assert.deepEqual(
    [server.name, server.parentSpanId, client.parentSpanId, client.name],
    ['tools/call read', CALLER, server.spanId, 'tools/call read'],
  )
  const received = notes.received.at(-1)?.headers
  assert.deepEqual([received?.traceparent, received?.tracestate], [`00-${TRACE}-${client.spanId}-01`, 'vendor=x'])
  const { attributes } = server
  assert.deepEqual(
    { ...attributes, 'plat.overhead_ms': typeof attributes['plat.overhead_ms'] },
    {
      'plat.decision_id': decision,
      'plat.namespace': 'default',
      'plat.agent': 'assistant',
      'plat.session': 's1',
      'plat.tier': 'tier-0',
      'plat.operation': 'mcp.call',
      'plat.server': 'notes',
      'plat.data_class': attributes['plat.data_class'],
      'plat.action': 'allow',
      'plat.policy': 'default/assistant',
      'plat.rule': 'all',
      'plat.result': 'completed',
      'plat.status': 200,
      'plat.overhead_ms': 'number',
      'http.request.method': 'POST',
      'url.path': '/mcp/notes',
      'mcp.method.name': 'tools/call',
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'read',
    },
  )
  assert.deepEqual([server.status, client.status], [{}, {}])
  assert.equal(client.attributes['server.port'], Number(new URL(notes.url).port))
  const [from, began, ended, to] = [
    server.startTimeUnixNano,
    client.startTimeUnixNano,
    client.endTimeUnixNano,
    server.endTimeUnixNano,
  ].map(BigInt)
  assert.ok(from !== undefined && began !== undefined && ended !== undefined && to !== undefined)
  assert.ok(from <= began && began <= ended && ended <= to)
  for (const { traceId, spanId } of await recordOf(fixture, decision)) {
    assert.deepEqual([traceId, spanId], [TRACE, server.spanId])
  }
  const [first] = collector.exports
  assert.equal(first?.path, '/v1/traces')
  assert.equal(first.resource['service.name'], 'plat-gateway')
  assert.equal(first.resource['deployment.environment.name'], 'test')
}

async function begins(_: TestContext, fixture: TelemetryFixture) {
  // A tracestate without a valid traceparent is not propagated.
  const { decision } = await fixture.call({ headers: { traceparent: '00-zz', tracestate: 'vendor=y' } })
  const trace = decision.replaceAll('-', '')
  const { server, client } = kinds(await fixture.collector.trace(trace, 2))
  assert.equal(server.parentSpanId, undefined)
  const received = fixture.notes.received.at(-1)?.headers
  assert.deepEqual([received?.traceparent, received?.tracestate], [`00-${trace}-${client?.spanId}-03`, undefined])
}

async function fromMessage(_: TestContext, fixture: TelemetryFixture) {
  const [trace, span] = ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331']
  const meta = { traceparent: `00-${trace}-${span}-01`, tracestate: 'm=1', baggage: 'a=b' }
  await fixture.call({ args: { n: 1 }, meta, headers: FROM_CALLER })
  const { server, client } = kinds(await fixture.collector.trace(trace, 2))
  assert.equal(server.parentSpanId, span)
  assert.deepEqual(server.links, [{ traceId: TRACE, spanId: CALLER, traceState: 'vendor=x' }])
  const sent = `00-${trace}-${client?.spanId}-01`
  const received = fixture.notes.received.at(-1)
  assert.deepEqual([received?.headers.traceparent, received?.headers.tracestate], [sent, 'm=1'])
  const params = { name: 'read', arguments: { n: 1 }, _meta: { ...meta, traceparent: sent } }
  assert.equal(received?.body, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))
}

async function containErrors(_: TestContext, { collector, notes, call }: TelemetryFixture) {
  const spansOf = async (options: Parameters<typeof call>[0], count: number) =>
    kinds(await collector.trace((await call(options)).decision.replaceAll('-', ''), count))
  const denied = await spansOf({ tool: 'forbidden' }, 1)
  assert.equal(denied.client, undefined)
  assert.deepEqual(
    [denied.server.attributes['error.type'], denied.server.attributes['plat.action'], denied.server.status],
    ['policy_denied', 'deny', { code: 2, message: 'denied by the test' }],
  )
  const unread = await spansOf({ body: '{"no' }, 1)
  assert.deepEqual([unread.server.name, unread.server.attributes['error.type']], ['POST /mcp', 'invalid_request'])
  notes.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}'))
  const failed = await spansOf({}, 2)
  assert.equal(failed.client?.attributes['error.type'], 'tool_error')
  notes.answers(json('{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}'))
  const wrong = await spansOf({}, 2)
  assert.deepEqual([wrong.server.attributes['error.type'], wrong.server.status.code], ['-32602', 2])
  notes.answers(json(ANSWER))
}

async function unsampled(_: TestContext, fixture: TelemetryFixture) {
  const trace = 'a'.repeat(32)
  const { decision } = await fixture.call({ headers: { traceparent: `00-${trace}-${CALLER}-00` } })
  assert.match(String(fixture.notes.received.at(-1)?.headers.traceparent), new RegExp(`^00-${trace}-[0-9a-f]{16}-00$`))
  const last = await fixture.call()
  await fixture.collector.trace(last.decision.replaceAll('-', ''), 2)
  assert.equal(fixture.collector.spans.filter(({ traceId }) => traceId === trace).length, 0)
  const [record] = await recordOf(fixture, decision)
  assert.equal(record.traceId, trace)
}

async function counts(_: TestContext, fixture: TelemetryFixture) {
  let text = ''
  const counted = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
  await until(async () => {
    text = await fixture.metrics()
    return counted('plat_gateway_otel_spans_exported_total') === fixture.collector.spans.length
  }, 'the spans counted that the collector has')
  const served = 'mcp_server_operation_duration_seconds_count\\{mcp_method_name="tools/call",error_type='
  assert.ok(counted(`${served}""\\}`) >= 4, text)
  assert.equal(counted(`${served}"policy_denied"\\}`), 1)
  assert.equal(counted(`${served}"tool_error"\\}`), 1)
  assert.match(text, /^plat_gateway_otel_queue_length 0$/m)
}
