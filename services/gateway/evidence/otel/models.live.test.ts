import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import type { ReceivedSpan } from './testing/collector.ts'
import { startFixture, type TelemetryFixture } from './testing/fixture.ts'

/** Requests a chat completion, and returns the span of the request to the model. */
async function chat({ gateway, collector }: TelemetryFixture, body: object): Promise<ReceivedSpan> {
  const response = await fetch(`${gateway.url}/llm/small/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-small', ...body }),
  })
  const trace = (response.headers.get('x-plat-decision-id') ?? '').replaceAll('-', '')
  await response.text()
  const spans = await collector.trace(trace, 2)
  const client = spans.find(({ kind }) => kind === 3)
  assert.ok(client !== undefined)
  return client
}

const ask = (content: string) => ({ messages: [{ role: 'user', content }] })

test('a model call has the attributes of the conventions, without content', async (t) => {
  // Shows D3.otel.genAI.emitLegacySystem, D3.otel.recordUser, D3.otel.recordArgs, D3.metric.gen_ai_client_token_usage
  // and D3.metric.gen_ai_client_operation_duration_seconds.
  const fixture = await startFixture(t, { recordArgs: true, recordUser: true, genAI: { emitLegacySystem: true } })
  const whole = await chat(fixture, { ...ask('a word'), temperature: 0.5, max_tokens: 7, stop: ['x', 'y'] })
  assert.equal(whole.name, 'chat gpt-small')
  const { 'server.port': port, 'gen_ai.response.id': id, ...attributes } = whole.attributes
  assert.deepEqual([port, id], [Number(new URL(fixture.model.url).port), 'chatcmpl-testkit'])
  assert.deepEqual(attributes, {
    'server.address': '127.0.0.1',
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.system': 'openai',
    'gen_ai.request.model': 'gpt-small',
    'gen_ai.agent.name': 'assistant',
    'gen_ai.conversation.id': 's1',
    'gen_ai.request.temperature': 0.5,
    'gen_ai.request.max_tokens': 7,
    'gen_ai.request.stop_sequences': ['x', 'y'],
    'gen_ai.response.model': 'gpt-small',
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.usage.input_tokens': 11,
    'gen_ai.usage.output_tokens': 3,
    'plat.model_route': 'small',
  })
  const streamed = await chat(fixture, { ...ask('a word'), stream: true })
  assert.deepEqual(
    ['id', 'model', 'finish_reasons'].map((name) => streamed.attributes[`gen_ai.response.${name}`]),
    ['chatcmpl-testkit', 'gpt-small', ['stop']],
  )
  await fixture.call({ args: { to: 'a word' } })
  await until(() => fixture.collector.spans.some(({ name }) => name === 'tools/call read'), 'the call of a tool')
  const tool = fixture.collector.spans.find(({ name, kind }) => name === 'tools/call read' && kind === 2)
  assert.equal(tool?.attributes['enduser.id'], 'ada')
  assert.equal(tool?.attributes['plat.args.bytes'], '{"to":"a word"}'.length)
  assert.match(String(tool?.attributes['plat.args.sha256']), /^[0-9a-f]{64}$/)
  assert.ok(!JSON.stringify(fixture.collector.spans).includes('a word'))
  await counts(fixture)
})

async function counts({ metrics }: TelemetryFixture) {
  const text = await metrics()
  const common = 'gen_ai_operation_name="chat",gen_ai_provider_name="openai"'
  const models = 'gen_ai_request_model="gpt-small",gen_ai_response_model="gpt-small",error_type=""'
  const lines = [
    `gen_ai_client_operation_duration_seconds_count{${common},${models}} 2`,
    `gen_ai_client_token_usage_sum{${common},plat_model_route="small",gen_ai_token_type="input"} 22`,
    `gen_ai_client_token_usage_sum{${common},plat_model_route="small",gen_ai_token_type="output"} 6`,
  ]
  for (const line of lines) assert.ok(text.split('\n').includes(line), `${line}\n${text}`)
}

test('content is exported only if enabled, redacted, and complete or not at all', async (t) => {
  // Shows D3.otel.genAI.captureContent, D3.otel.genAI.contentDlpProfile, D3.otel.genAI.maxContentBytes.
  const genAI = { captureContent: true, contentDlpProfile: 'mail', maxContentBytes: 400 }
  const dlpProfiles = { mail: { detectors: ['email'], requestAction: 'audit' } }
  const fixture = await startFixture(t, { genAI }, { config: { dlpProfiles } })
  const pieces = ['Mail ada@exam', 'ple.com', '.']
  fixture.model.answers({ text: pieces })
  const prompt = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: [{ type: 'text', text: 'Who is bob@example.com?' }] },
  ]
  for (const stream of [false, true]) {
    const { attributes, droppedAttributesCount } = await chat(fixture, { messages: prompt, stream })
    const messagesOf = (name: string) => JSON.parse(String(attributes[`gen_ai.${name}.messages`]))
    assert.deepEqual(messagesOf('input'), [
      { role: 'system', parts: [{ type: 'text', content: 'Be brief.' }] },
      { role: 'user', parts: [{ type: 'text', content: 'Who is [REDACTED:email]?' }] },
    ])
    assert.deepEqual(messagesOf('output'), [
      { role: 'assistant', parts: [{ type: 'text', content: 'Mail [REDACTED:email].' }], finish_reason: 'stop' },
    ])
    assert.equal(droppedAttributesCount, undefined)
  }
  fixture.model.answers({ text: Array.from({ length: 100 }, () => 'longer ') })
  for (const stream of [false, true]) {
    const { attributes, droppedAttributesCount } = await chat(fixture, { ...ask('x'.repeat(400)), stream })
    assert.equal(attributes['gen_ai.input.messages'], undefined)
    assert.equal(attributes['gen_ai.output.messages'], undefined)
    assert.equal(droppedAttributesCount, 2)
  }
  fixture.model.answers({ text: [], error: { status: 500, message: 'no' } })
  const failed = await chat(fixture, ask('hello'))
  assert.deepEqual(
    [failed.attributes['error.type'], failed.attributes['gen_ai.output.messages'], failed.droppedAttributesCount],
    ['upstream_error', undefined, undefined],
  )
})

test('spans are not sent to forbidden regions', async (t) => {
  // Shows D3.otel.endpoint.
  const sovereigntyPolicyFile = join(tempFolder(), 'sovereignty.json')
  await writeFile(sovereigntyPolicyFile, JSON.stringify({ version: 1, allowedCIDRs: ['10.0.0.0/8'] }))
  const { call, collector, metrics } = await startFixture(t, {}, { config: { sovereigntyPolicyFile } })
  await call()
  await until(async () => /^plat_gateway_otel_spans_failed_total [1-9]/m.test(await metrics()), 'the end of the spans')
  assert.equal(collector.exports.length, 0)
})
