import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { until } from '@plat/testkit/until'
import fc from 'fast-check'
import OpenAI from 'openai'

const API_KEY = `sk-${Math.random().toString(36).slice(2)}`
const messages = [{ role: 'user' as const, content: 'Say hello.' }]

let upstream: ModelServer
let gateway: GatewayProcess
let dir: string

before(async () => {
  upstream = await startModelServer({ apiKey: API_KEY })
  dir = await mkdtemp(path.join(os.tmpdir(), 'plat-'))
  await writeFile(path.join(dir, 'key'), `${API_KEY}\n`)
  await writeFile(path.join(dir, 'wrong'), 'sk-wrong-0000')
  const route = { upstream: upstream.url, apiKeyFile: path.join(dir, 'key') }
  gateway = await startGatewayProcess({
    servers: {},
    scopes: ['small', 'forced', 'aliased', 'wrong', 'keyless', 'others', 'gone', 'clamped'].map(
      (name) => `models:${name}`,
    ),
    config: {
      models: {
        small: route,
        forced: { ...route, model: 'large-1' },
        aliased: { ...route, aliases: { fast: 'small-1' } },
        wrong: { ...route, apiKeyFile: path.join(dir, 'wrong') },
        keyless: { ...route, apiKeyFile: path.join(dir, 'none') },
        others: { ...route, agents: ['default/other'] },
        clamped: { ...route, maxTokensPerRequest: 100 },
        unscoped: route,
      },
    },
  })
})

after(async () => {
  await gateway.close()
  await upstream.close()
  await rm(dir, { recursive: true })
})

beforeEach(() => upstream.answers({ text: ['Hello', ' world', '.'] }))

function client(route = 'small', maxRetries = 0): OpenAI {
  return new OpenAI({ baseURL: `${gateway.url}/llm/${route}/v1`, apiKey: gateway.token, maxRetries })
}

/** The members of the last request that the upstream got. */
function lastBody(): Record<string, unknown> {
  return JSON.parse(upstream.calls.at(-1)?.body ?? '{}')
}

async function records(kind: 'intent' | 'outcome'): Promise<readonly Record<string, unknown>[]> {
  return (await gateway.ledger()).map((line) => JSON.parse(line).rec).filter((record) => record.kind === kind)
}

/** The one outcome that the work leaves in the ledger. */
async function outcomeOf(work: () => Promise<unknown>): Promise<Record<string, unknown>> {
  // The outcome of a call before may still be on its way: its answer does not wait for it.
  const begun = (await records('intent')).length
  await until(async () => (await records('outcome')).length === begun, 'the outcomes of calls before')
  await work()
  await until(async () => (await records('outcome')).length > begun, 'the outcome')
  const found = await records('outcome')
  assert.equal(found.length, begun + 1)
  return found.at(-1) ?? {}
}

async function failure(work: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  try {
    await work
  } catch (error) {
    if (error instanceof OpenAI.APIError) return error
    throw error
  }
  return assert.fail('it did not fail')
}

test('the official client completes, and the upstream gets the request byte for byte with the route own key', async () => {
  // Shows D3.endpoint.llm, D3.route.upstream, D3.route.provider.openai, D3.route.sessionTokenStripped
  const seen = upstream.calls.length
  const outcome = await outcomeOf(async () => {
    const request = { model: 'small-1', messages, seed: 9007199254740991 }
    const { data, response } = await client().chat.completions.create(request).withResponse()
    assert.equal(data.choices[0]?.message.content, 'Hello world.')
    assert.equal(data.usage?.completion_tokens, 3)
    assert.equal(response.headers.get('x-request-id'), 'req_testkit')
    assert.match(response.headers.get('x-plat-decision-id') ?? '', /^[0-9a-f-]{36}$/)
  })
  const call = upstream.calls[seen]
  assert.equal(call?.body, JSON.stringify({ model: 'small-1', messages, seed: 9007199254740991 }))
  assert.equal(call?.headers.authorization, `Bearer ${API_KEY}`)
  assert.ok(!JSON.stringify(call?.headers).includes(gateway.token), 'the session token stays here')
  assert.deepEqual(
    [outcome.op, outcome.server, outcome.tool, outcome.usageSource, outcome.usage],
    [
      'model.generate',
      'llm/small',
      'small-1',
      'reported',
      { prompt: 11, completion: 3, cachedRead: 0, cachedWrite: 0, reasoning: 0 },
    ],
  )
})

test('a stream is relayed unchanged, without usage that the caller did not request', async () => {
  const chunks: OpenAI.ChatCompletionChunk[] = []
  const outcome = await outcomeOf(async () => {
    const stream = await client().chat.completions.create({ model: 'small-1', messages, stream: true })
    for await (const chunk of stream) chunks.push(chunk)
  })
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join(''), 'Hello world.')
  assert.ok(chunks.every((chunk) => chunk.choices.length === 1 && !chunk.usage))
  assert.deepEqual(lastBody().stream_options, { include_usage: true })
  assert.deepEqual([outcome.usageSource, outcome.result], ['reported', 'completed'])
})

test('the usage of a stream is relayed if the caller requested it, and other stream options are kept', async () => {
  const options = { include_usage: true, include_obfuscation: false }
  const stream = await client().chat.completions.create({
    model: 'small-1',
    messages,
    stream: true,
    stream_options: options,
  })
  const last = []
  for await (const chunk of stream) if (chunk.usage) last.push(chunk.usage.total_tokens)
  assert.deepEqual(last, [14])
  assert.deepEqual(lastBody().stream_options, options)
  const without = { include_usage: false, include_obfuscation: false }
  const more = await client().chat.completions.create({
    model: 'small-1',
    messages,
    stream: true,
    stream_options: without,
  })
  for await (const chunk of more) assert.ok(!chunk.usage)
  assert.deepEqual(lastBody().stream_options, { include_usage: true, include_obfuscation: false })
})

test('for any split of the upstream into chunks the client receives the same content', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(fc.string({ unit: 'grapheme' }), fc.constantFrom('[DONE]', 'data: x\n\n', '"usage":{}', '\r\n')),
        {
          maxLength: 8,
        },
      ),
      fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 6 }),
      async (text, split) => {
        upstream.answers({ text, split })
        let got = ''
        const stream = await client().chat.completions.create({ model: 'small-1', messages, stream: true })
        for await (const chunk of stream) got += chunk.choices[0]?.delta.content ?? ''
        assert.equal(got, text.join(''))
      },
    ),
    { numRuns: 25 },
  )
})

test('a client that leaves ends the call upstream, and what it used is estimated', async () => {
  // More than all sockets on the way can hold, so that it cannot have been sent whole before the client leaves.
  upstream.answers({ text: Array.from({ length: 20_000 }, () => 'word '.repeat(200)) })
  const seen = upstream.calls.length
  const outcome = await outcomeOf(async () => {
    const stream = await client().chat.completions.create({ model: 'small-1', messages, stream: true })
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break
    stream.controller.abort()
    const call = await upstream.call(seen + 1)
    await until(() => call.aborted, 'the call ended upstream')
  })
  assert.deepEqual([outcome.result, outcome.usageSource], ['cancelled', 'estimated'])
})

test('a client that leaves before the answer ends the call upstream as well', async () => {
  const held = Promise.withResolvers<void>()
  upstream.answers({ text: ['late'], after: held.promise })
  const seen = upstream.calls.length
  const leave = new AbortController()
  const work = client().chat.completions.create({ model: 'small-1', messages }, { signal: leave.signal })
  const call = await upstream.call(seen + 1)
  leave.abort()
  await assert.rejects(work, OpenAI.APIUserAbortError)
  await until(() => call.aborted, 'the call ended upstream')
  held.resolve()
})

test('an upstream that dies in the middle, stops too early or reports an error gives the terminal error of the dialect', async () => {
  for (const fault of [{ diesAfter: 700 }, { truncated: true }, { error: { status: 500, message: 'overloaded' } }]) {
    upstream.answers({ text: ['Hello', ' world', '.'], split: [64], ...fault })
    const read = async () => {
      const stream = await client().chat.completions.create({ model: 'small-1', messages, stream: true })
      for await (const chunk of stream) assert.ok(chunk.choices.length <= 1)
    }
    const outcome = await outcomeOf(async () => {
      const error = await failure(read())
      assert.deepEqual([error.code, error.type], ['upstream_error', 'server_error'], JSON.stringify(fault))
    })
    assert.deepEqual([outcome.result, outcome.code], ['failed', 'upstream_error'])
  }
})

test('the client retries what may succeed later, and nothing else', async () => {
  let fails = 1
  upstream.answers(() =>
    fails-- > 0 ? { text: [], error: { status: 503, message: 'overloaded' } } : { text: ['Hello'] },
  )
  let seen = upstream.calls.length
  const answer = await client('small', 2).chat.completions.create({ model: 'small-1', messages })
  assert.equal(answer.choices[0]?.message.content, 'Hello')
  assert.equal(upstream.calls.length - seen, 2)

  upstream.answers({ text: [], error: { status: 429, message: 'slow down', headers: { 'retry-after-ms': '1' } } })
  seen = upstream.calls.length
  const limited = await failure(client('small', 1).chat.completions.create({ model: 'small-1', messages }))
  assert.deepEqual([limited.status, upstream.calls.length - seen], [429, 2])

  seen = upstream.calls.length
  const refused = await failure(client('small', 2).chat.completions.create({ model: 'small-1', messages, n: 0 }))
  assert.deepEqual([refused.status, refused.code, refused.param], [400, 'invalid_request', 'n'])
  assert.equal(refused.headers?.get('x-should-retry'), 'false')
  assert.equal(upstream.calls.length, seen)
})

test('an error of the upstream reaches the client unchanged, but never the key of the upstream', async () => {
  // Shows D3.route.auth.type.api-key
  const role: 'user' = JSON.parse('"narrator"')
  const wrong = await failure(
    client().chat.completions.create({ model: 'small-1', messages: [{ role, content: 'x' }] }),
  )
  assert.deepEqual([wrong.status, wrong.param], [400, 'messages[0].role'])
  const key = await failure(client('wrong').chat.completions.create({ model: 'small-1', messages }))
  assert.deepEqual([key.status, key.code], [502, 'upstream_credential'])
  assert.ok(!JSON.stringify(key.error).includes('sk-'))
})

test('each refusal has its status, code and type', async () => {
  // Shows D3.models.models
  const cases: readonly (readonly [string, number, string, string])[] = [
    ['unscoped', 403, 'insufficient_scope', 'permission_error'],
    ['others', 403, 'forbidden', 'permission_error'],
    ['gone', 404, 'unknown_route', 'invalid_request_error'],
    ['nobody', 403, 'insufficient_scope', 'permission_error'],
    ['keyless', 502, 'upstream_credential', 'server_error'],
  ]
  const seen = upstream.calls.length
  for (const [route, status, code, type] of cases) {
    const error = await failure(client(route).chat.completions.create({ model: 'small-1', messages }))
    assert.deepEqual([error.status, error.code, error.type], [status, code, type], route)
  }
  const unknownRoute = new OpenAI({ baseURL: `${gateway.url}/llm/small/v1`, apiKey: 'x.y.z', maxRetries: 0 })
  const error = await failure(unknownRoute.chat.completions.create({ model: 'small-1', messages }))
  assert.deepEqual([error.status, error.code, error.type], [401, 'unauthenticated', 'authentication_error'])
  assert.match(error.headers?.get('www-authenticate') ?? '', /^Bearer /)
  const hosted: OpenAI.ChatCompletionTool = JSON.parse('{"type":"web_search"}')
  const tools = await failure(client().chat.completions.create({ model: 'small-1', messages, tools: [hosted] }))
  assert.deepEqual([tools.status, tools.code], [403, 'provider_hosted_tool'])
  assert.equal(upstream.calls.length, seen)
})

test('a route forces its model or translates names, and says which models there are', async () => {
  await client('forced').chat.completions.create({ model: 'small-1', messages })
  assert.equal(lastBody().model, 'large-1')
  const stream = await client('aliased').chat.completions.create({ model: 'fast', messages, stream: true })
  for await (const _ of stream);
  assert.equal(lastBody().model, 'small-1')
  const models = await client().models.list()
  assert.deepEqual(
    models.data.map(({ id }) => id),
    ['small-1', 'large-1'],
  )
})

test('a route limits the tokens of a request, and says so', async () => {
  // Shows D2.model.maxTokensPerRequest
  const ask = (limit: object) =>
    client('clamped')
      .chat.completions.create({ model: 'small-1', messages, ...limit })
      .withResponse()
  const { response } = await ask({ max_tokens: 5000 })
  assert.deepEqual([lastBody().max_tokens, response.headers.get('x-plat-max-tokens')], [100, '100'])
  assert.equal((await ask({ max_completion_tokens: 7 })).response.headers.get('x-plat-max-tokens'), null)
  assert.deepEqual([lastBody().max_tokens, lastBody().max_completion_tokens], [undefined, 7])
})
