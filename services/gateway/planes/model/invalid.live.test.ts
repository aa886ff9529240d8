import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { wholeLines } from '@plat/testkit/ledger'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { started } from '../../testing/started.ts'

/** Text in invalid responses that must not reach a client. */
const MARK = 'mark-of-the-upstream'

const JSON_TYPE = { 'content-type': 'application/json' }
const SSE_TYPE = { 'content-type': 'text/event-stream' }

/** Requests, and valid responses to them: whole, and as the events of a stream with the terminal event last. */
const DIALECTS = {
  'chat/completions': {
    provider: 'openai',
    ask: { model: 'm', messages: [] },
    whole: { choices: [{ index: 0, message: { content: MARK } }], usage: { prompt_tokens: 1, completion_tokens: 1 } },
    events: ['{"choices":[{"index":0,"delta":{"content":"ok"}}]}', '[DONE]'],
  },
  completions: {
    provider: 'openai',
    ask: { model: 'm', prompt: 'x' },
    whole: { choices: [{ index: 0, text: MARK }], usage: { prompt_tokens: 1, completion_tokens: 1 } },
    events: ['{"choices":[{"index":0,"text":"ok"}]}', '[DONE]'],
  },
  responses: {
    provider: 'openai',
    ask: { model: 'm', input: 'x' },
    whole: { output: [{ type: 'message', text: MARK }], usage: { input_tokens: 1, output_tokens: 1 } },
    events: [
      '{"type":"response.output_text.delta","delta":"ok"}',
      '{"type":"response.completed","response":{"output":[]}}',
    ],
  },
  messages: {
    provider: 'anthropic',
    ask: { model: 'm', max_tokens: 9, messages: [] },
    whole: { type: 'message', content: [{ type: 'text', text: MARK }], usage: { input_tokens: 1, output_tokens: 1 } },
    events: [
      '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}',
      '{"type":"message_stop"}',
    ],
  },
} as const
type Method = keyof typeof DIALECTS

/** A gateway in front of an upstream that sends what `respond` says. */
async function setup(t: TestContext, method: Method | 'embeddings', more: object = {}) {
  let respond: RequestListener = (_, response) => response.end()
  const server = createServer((request, response) => {
    request.resume().once('end', () => respond(request, response))
  })
  const port = await listening(server)
  t.after(() => closed(server))
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const provider = method === 'embeddings' ? 'openai' : DIALECTS[method].provider
  const models = { r: { provider, upstream: `http://127.0.0.1:${port}/v1` } }
  const { gateway, issuer } = await started(t, { models, auditPath, ...more })
  const headers = { authorization: `Bearer ${issuer.token({ scope: 'models:r' })}`, ...JSON_TYPE }
  let calls = 0
  return {
    /** Returns the response to the client and the record of the call. */
    async call(ask: object, answer: RequestListener) {
      respond = answer
      const body = JSON.stringify(ask)
      const response = await fetch(`${gateway.url}/llm/r/v1/${method}`, { method: 'POST', headers, body })
      const text = await response.text()
      calls++
      const outcomes = () =>
        wholeLines(auditPath)
          .map((line) => JSON.parse(line).rec)
          .filter(({ kind }) => kind === 'outcome')
      await until(async () => outcomes().length === calls, 'the outcome')
      return { status: response.status, text, outcome: outcomes().at(-1) }
    },
  }
}

/** Bodies that are not a valid response to any request, as bytes. */
function invalidBodies(whole: object): Readonly<Record<string, Buffer>> {
  const text = JSON.stringify(whole)
  return {
    'invalid JSON': Buffer.from(text.replace(`"${MARK}"`, MARK)),
    'invalid UTF-8': Buffer.from(text.replace(MARK, `${MARK}\xff`), 'latin1'),
    'two values': Buffer.from(`${text}${text}`),
    'a member twice': Buffer.from(text.replace('{', `{"model":"${MARK}","model":"x",`)),
    'no object': Buffer.from(`["${MARK}"]`),
    'another object': Buffer.from(`{"mark":"${MARK}"}`),
    'an error with status 200': Buffer.from(`{"error":{"message":"${MARK}"}}`),
    'usage that is not a count': Buffer.from(text.replace(/_tokens":1/, '_tokens":"1"')),
  }
}

for (const method of ['chat/completions', 'completions', 'responses', 'messages'] as const) {
  const { ask, whole, events } = DIALECTS[method]

  test(`an invalid response of ${method} is an upstream_error, and nothing of it is relayed`, async (t) => {
    const { call } = await setup(t, method)
    for (const [what, body] of Object.entries(invalidBodies(whole))) {
      const { status, text, outcome } = await call(ask, (_, response) => response.writeHead(200, JSON_TYPE).end(body))
      assert.equal(status, 502, what)
      assert.equal(JSON.parse(text).error.code, 'upstream_error', what)
      assert.ok(!text.includes(MARK), what)
      assert.deepEqual([outcome.result, outcome.code], ['failed', 'upstream_error'], what)
    }
    for (const [what, head, body] of [
      ['an error that is not JSON', 400, `{"error":${MARK}`],
      ['an error with trailing data', 429, `{"error":{"message":"${MARK}"}} x`],
    ] as const) {
      const { status, text } = await call(ask, (_, response) => response.writeHead(head, JSON_TYPE).end(body))
      assert.deepEqual([status, text.includes(MARK)], [502, false], what)
    }
    const stream = events.map((data) => `data: ${data}\n\n`).join('')
    const unasked = await call(ask, (_, response) => response.writeHead(200, SSE_TYPE).end(stream))
    assert.deepEqual([unasked.status, unasked.outcome.result], [502, 'failed'], 'a stream that was not requested')
  })

  test(`a provider cannot state a refusal of the gateway in an error of ${method}`, async (t) => {
    const { call } = await setup(t, method)
    for (const [code, isKept] of [
      ['upstream_credential', false],
      ['context_length_exceeded', true],
    ] as const) {
      const error = JSON.stringify({ error: { type: 'invalid_request_error', code, message: 'no', approval_id: 'a' } })
      const { status, text } = await call(ask, (_, response) => response.writeHead(400, JSON_TYPE).end(error))
      assert.deepEqual([status, JSON.parse(text).error.message, text.includes(code)], [400, 'no', isKept])
    }
  })

  test(`an invalid event of ${method} ends the stream with an error, and nothing of it is relayed`, async (t) => {
    const { call } = await setup(t, method)
    const [first, last] = events
    const invalid = {
      'invalid JSON': `${first.slice(0, -1)},"a":${MARK}}`,
      'invalid UTF-8': first.replace('ok', `${MARK}\xff`),
      'two values': `${first}"${MARK}"`,
      'a member twice': first.replace('{', `{"model":"${MARK}","model":"x",`),
      'no object': `"${MARK}"`,
      'another object': `{"mark":"${MARK}"}`,
      'an error': `{"type":"error","error":{"message":"${MARK}"}}`,
    }
    for (const [what, event] of Object.entries(invalid)) {
      const bytes = Buffer.from([first, event, last].map((data) => `data: ${data}\n\n`).join(''), 'latin1')
      const streamed = { ...ask, stream: true }
      const { text, outcome } = await call(streamed, (_, response) => response.writeHead(200, SSE_TYPE).end(bytes))
      assert.ok(text.includes('"ok"'), `${what}: the event before it is relayed`)
      assert.match(text, /"code":"upstream_error"[^\n]*\n\n$/, what)
      assert.ok(!text.includes(MARK) && !text.includes(last), what)
      assert.deepEqual([outcome.result, outcome.usageSource], ['failed', 'estimated'], what)
      assert.ok(outcome.usage.completion > 0, `${what}: what was seen is counted`)
    }
  })

  test(`a stream of ${method} that ends before its last event is not completed`, async (t) => {
    const { call } = await setup(t, method)
    const bytes = `data: ${events[0]}\n\n`
    const streamed = { ...ask, stream: true }
    const { text, outcome } = await call(streamed, (_, response) => response.writeHead(200, SSE_TYPE).end(bytes))
    assert.match(text, /"code":"upstream_error"[^\n]*\n\n$/)
    assert.deepEqual([outcome.result, outcome.code], ['failed', 'upstream_error'])
    const json = await call(streamed, (_, response) => response.writeHead(200, JSON_TYPE).end(JSON.stringify(whole)))
    assert.deepEqual([json.status, json.outcome.result], [502, 'failed'], 'no stream')
  })

  test(`nothing follows the last event of a stream of ${method}`, async (t) => {
    const { call } = await setup(t, method)
    const bytes = [...events, `{"mark":"${MARK}"}`].map((data) => `data: ${data}\n\n`).join('')
    const streamed = { ...ask, stream: true }
    const { text, outcome } = await call(streamed, (_, response) => response.writeHead(200, SSE_TYPE).end(bytes))
    assert.deepEqual([text.includes(MARK), outcome.result], [false, 'completed'])
  })
}

test('a response whose body stalls behind its head ends in upstream_timeout', async (t) => {
  const { call } = await setup(t, 'chat/completions', { upstreamTimeoutSeconds: 1 })
  const { ask } = DIALECTS['chat/completions']
  const { status, text, outcome } = await call(ask, (_, response) => {
    response.writeHead(200, JSON_TYPE).write('{"choices":[')
  })
  assert.deepEqual([status, JSON.parse(text).error.code], [504, 'upstream_timeout'])
  assert.equal(outcome.result, 'failed')
})

test('a comment in front of its data does not take an event past redaction', async (t) => {
  const profile = { responseAction: 'redact', custom: [{ id: 'mark', regex: MARK }] }
  const { call } = await setup(t, 'chat/completions', {
    dlpProfiles: { strict: profile },
    dlp: { defaultProfile: 'strict' },
  })
  const { ask } = DIALECTS['chat/completions']
  const bytes = `: comment\ndata: {"choices":[{"index":0,"delta":{"content":"${MARK}"}}]}\n\ndata: [DONE]\n\n`
  const streamed = { ...ask, stream: true }
  const { text, outcome } = await call(streamed, (_, response) => response.writeHead(200, SSE_TYPE).end(bytes))
  assert.deepEqual([text.includes(MARK), outcome.result], [false, 'completed'])
})
