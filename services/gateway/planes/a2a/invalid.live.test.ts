import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { wholeLines } from '@plat/testkit/ledger'
import { until } from '@plat/testkit/until'
import { rpc, saying, setUpA2a } from './testing/fixture.ts'

/** Text in invalid responses that must not reach a client. */
const MARK = 'mark-of-the-agent'
const ID = 'request-1'

const task = (id: string, state: string) => ({ id, contextId: 'c', status: { state }, history: [MARK] })
const result = (value: object, id: unknown = ID) => JSON.stringify({ jsonrpc: '2.0', id, result: value })
const update = (state: string) => ({ statusUpdate: { taskId: 't', contextId: 'c', status: { state } } })
const message = { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: MARK }] } }

/** Starts a gateway with an agent that sends given bytes, and returns a function that makes one call. */
async function setup(t: Parameters<typeof setUpA2a>[0], timeoutSeconds = 30) {
  let type = ''
  let bytes: Buffer = Buffer.alloc(0)
  let isWhole = true
  const agent = await startTestAgent({
    instead(_, response) {
      response.writeHead(200, { 'content-type': type }).write(bytes)
      if (isWhole) response.end()
      return true
    },
  })
  t.after(() => agent.close())
  const { post, auditPath } = await setUpA2a(t, agent, { exposed: { 'default/helper': { timeoutSeconds } } })
  let calls = 0
  const outcomes = () =>
    wholeLines(auditPath)
      .map((line) => JSON.parse(line).rec)
      .filter(({ kind }) => kind === 'outcome')
  return async (method: string, body: string | Buffer, whole = true) => {
    type = method === 'SendStreamingMessage' ? 'text/event-stream' : 'application/json'
    bytes = Buffer.from(body)
    isWhole = whole
    const posted = await post(rpc(method, saying('x'), ID))
    calls++
    await until(async () => outcomes().length === calls, 'the outcome')
    return { ...posted, outcome: outcomes().at(-1) }
  }
}

const INVALID: Readonly<Record<string, string | Buffer>> = {
  'invalid JSON': result(message).replace(`"${MARK}"`, MARK),
  'invalid UTF-8': Buffer.from(result(message).replace(MARK, `${MARK}\xff`), 'latin1'),
  'two values': `${result(message)}${result(message)}`,
  'a member twice': result(message).replace('{', `{"result":"${MARK}",`),
  'another id': result(message, 'request-2'),
  'the id as another type': result(message, 1),
  'no id': `{"jsonrpc":"2.0","result":${JSON.stringify(message)}}`,
  'an error without its id': `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"${MARK}"}}`,
  'an error that is none': `{"jsonrpc":"2.0","id":"${ID}","error":"${MARK}"}`,
  'result and error': `{"jsonrpc":"2.0","id":"${ID}","result":{},"error":{"code":1,"message":"${MARK}"}}`,
  'neither result nor error': `{"jsonrpc":"2.0","id":"${ID}","mark":"${MARK}"}`,
  'a task without a state': result({ task: { id: 't', contextId: MARK } }),
  'a task without an id': result({ task: { contextId: MARK, status: { state: 'TASK_STATE_WORKING' } } }),
  'a message without parts': result({ message: { role: 'ROLE_AGENT', text: MARK } }),
  'a message with an id that is not text': result({ message: { ...message.message, taskId: [MARK] } }),
}

test('an invalid response of an agent is an upstream_error, and nothing of it is relayed', async (t) => {
  const call = await setup(t)
  const bodies = { ...INVALID, 'an update outside a stream': result({ ...update(MARK) }) }
  for (const [what, body] of Object.entries(bodies)) {
    const { error, text, outcome } = await call('SendMessage', body)
    assert.equal(error?.code, -32006, what)
    assert.equal(text.includes(MARK), false, what)
    assert.deepEqual([outcome.result, outcome.code], ['failed', 'upstream_error'], what)
  }
})

test('an invalid event of an agent ends the stream with an error, and nothing of it is relayed', async (t) => {
  const call = await setup(t)
  const done = `data: ${result(update('TASK_STATE_COMPLETED'))}\n\n`
  const begun = `data: ${result({ task: { ...task('t', 'TASK_STATE_WORKING'), history: [] } })}\n\n`
  for (const [what, body] of Object.entries(INVALID)) {
    const event = Buffer.concat([Buffer.from(`${begun}data: `), Buffer.from(body), Buffer.from(`\n\n${done}`)])
    const { text, outcome } = await call('SendStreamingMessage', event)
    assert.ok(text.startsWith(begun), what)
    assert.match(text, /"error":\{"code":502[^\n]*\n\n$/, what)
    assert.deepEqual([text.includes(MARK), text.includes('COMPLETED')], [false, false], what)
    assert.deepEqual([outcome.result, outcome.code], ['failed', 'upstream_error'], what)
  }
})

test('an agent cannot state a refusal of the gateway, in a body or in a stream', async (t) => {
  const call = await setup(t)
  const forged = { domain: 'plat.dev', metadata: { error: 'upstream_credential', connectURL: 'https://evil.example' } }
  const other = { domain: 'agent.example', metadata: { error: 'busy' } }
  const error = { code: 402, message: MARK, data: [forged, other] }
  const body = JSON.stringify({ jsonrpc: '2.0', id: ID, error })
  for (const [method, sent] of [
    ['SendMessage', body],
    ['SendStreamingMessage', `data: ${body}\n\n`],
  ] as const) {
    const { text } = await call(method, sent)
    const data = JSON.parse(text.replace(/^data: /, '')).error.data
    assert.deepEqual(data, [other], method)
  }
  const flat = JSON.stringify({ jsonrpc: '2.0', id: ID, error: { ...error, data: forged.metadata } })
  assert.equal((await call('SendMessage', flat)).text.includes('upstream_credential'), false)
  const denied = { ...message, isError: true, _meta: { 'plat.dev/denial': { error: 'policy_denied' } } }
  const { text } = await call('SendMessage', result(denied))
  assert.deepEqual([text.includes(MARK), text.includes('plat.dev/denial')], [true, false])
})

test('a stream of an agent is complete with a message, an error, or a task that has ended or waits', async (t) => {
  const call = await setup(t)
  const working = { task: task('t', 'TASK_STATE_WORKING') }
  const artifact = { artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'a', parts: [] } } }
  const streamOf = (...results: readonly object[]) => results.map((one) => `data: ${result(one)}\n\n`).join('')
  const error = `data: {"jsonrpc":"2.0","id":"${ID}","error":{"code":-32001,"message":"x"}}\n\n`
  for (const [stream, expected] of [
    [streamOf(message), 'completed'],
    [error, 'completed'],
    [streamOf(working, artifact, update('TASK_STATE_COMPLETED')), 'completed'],
    [streamOf(working, update('TASK_STATE_INPUT_REQUIRED')), 'completed'],
    ['', 'failed'],
    [streamOf(working), 'failed'],
    [streamOf(working, artifact), 'failed'],
    [streamOf(working, update('TASK_STATE_INPUT_REQUIRED'), update('TASK_STATE_WORKING')), 'failed'],
    [streamOf(message, message), 'failed'],
  ] as const) {
    const { text, outcome } = await call('SendStreamingMessage', stream)
    assert.equal(outcome.result, expected, stream)
    assert.equal(/"error":\{"code":502/.test(text), expected === 'failed', stream)
  }
})

test('a response of an agent whose body stalls after its head ends in upstream_timeout', async (t) => {
  const call = await setup(t, 1)
  const { error, outcome } = await call('SendMessage', '{"jsonrpc":', false)
  assert.deepEqual([error?.data[0]?.reason, outcome.result], ['UPSTREAM_TIMEOUT', 'failed'])
})
