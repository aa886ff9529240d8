import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { ScriptedProvider } from '@plat/testkit/model/scripted-provider'
import { until } from '@plat/testkit/until'
import OpenAI from 'openai'
import { outcomesOf } from '../testing.ts'
import { AWS_STREAM_TYPE, SSE_TYPE } from './streams.ts'
import { awsEvent, sseEvent } from './testing.ts'

/** Script of a provider: a text, then a call of a tool, with usage; whole and as a stream. */
interface Script {
  readonly whole: object
  readonly type: string
  readonly events: readonly Buffer[]
  /** Where the message of the user is in the request. */
  said(body: Record<string, unknown>): unknown
}

const SAID = 'Where is it sunny?'
const args = { at: 'Oslo' }
const chatCall = (more: object) => ({ id: 'c1', type: 'function', function: { name: 'weather', ...more } })
const chatUsage = { prompt_tokens: 9, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 3 } }
const chunk = (delta: object, finish_reason: string | null = null) =>
  sseEvent({ choices: [{ index: 0, delta, finish_reason }] })
const geminiUsage = { promptTokenCount: 9, candidatesTokenCount: 4, cachedContentTokenCount: 3 }
const geminiPart = (part: object, finishReason?: string) => ({
  candidates: [{ content: { parts: [part] }, finishReason }],
})
const functionCall = { name: 'weather', args }
const converseUsage = { inputTokens: 6, outputTokens: 4, cacheReadInputTokens: 3 }
const claudeUsage = { input_tokens: 6, output_tokens: 4, cache_read_input_tokens: 3 }
const toolUse = { type: 'tool_use', id: 'c1', name: 'weather', input: args }

const SCRIPTS: Readonly<Record<string, Script>> = {
  plain: {
    whole: {
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello', tool_calls: [chatCall({ arguments: JSON.stringify(args) })] },
          finish_reason: 'tool_calls',
        },
      ],
      usage: chatUsage,
    },
    type: SSE_TYPE,
    events: [
      chunk({ role: 'assistant', content: 'Hel' }),
      chunk({ content: 'lo' }),
      chunk({ tool_calls: [{ index: 0, ...chatCall({ arguments: '{"at":' }) }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: '"Oslo"}' } }] }),
      chunk({}, 'tool_calls'),
      sseEvent({ choices: [], usage: chatUsage }),
      Buffer.from('data: [DONE]\n\n'),
    ],
    said: ({ messages }) => messages,
  },
  gemini: {
    whole: {
      candidates: [{ content: { parts: [{ text: 'Hello' }, { functionCall }] }, finishReason: 'STOP' }],
      usageMetadata: geminiUsage,
    },
    type: SSE_TYPE,
    events: [
      sseEvent(geminiPart({ text: 'Hel' })),
      sseEvent(geminiPart({ text: 'lo' })),
      sseEvent({ ...geminiPart({ functionCall }, 'STOP'), usageMetadata: geminiUsage }),
    ],
    said: ({ contents }) => contents,
  },
  converse: {
    whole: {
      output: {
        message: { content: [{ text: 'Hello' }, { toolUse: { toolUseId: 'c1', name: 'weather', input: args } }] },
      },
      stopReason: 'tool_use',
      usage: converseUsage,
    },
    type: AWS_STREAM_TYPE,
    events: [
      awsEvent('contentBlockDelta', { delta: { text: 'Hello' } }),
      awsEvent('contentBlockStart', { start: { toolUse: { toolUseId: 'c1', name: 'weather' } } }),
      awsEvent('contentBlockDelta', { delta: { toolUse: { input: JSON.stringify(args) } } }),
      awsEvent('messageStop', { stopReason: 'tool_use' }),
      awsEvent('metadata', { usage: converseUsage }),
    ],
    said: ({ messages }) => messages,
  },
  claude: {
    whole: {
      type: 'message',
      content: [{ type: 'text', text: 'Hello' }, toolUse],
      stop_reason: 'tool_use',
      usage: claudeUsage,
    },
    type: SSE_TYPE,
    events: [
      { type: 'message_start', message: { usage: { ...claudeUsage, output_tokens: 1 } } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
      { type: 'content_block_start', index: 1, content_block: { ...toolUse, input: {} } },
      {
        type: 'content_block_delta',
        index: 1,
        delta: { type: 'input_json_delta', partial_json: JSON.stringify(args) },
      },
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 4 } },
      { type: 'message_stop' },
    ].map(sseEvent),
    said: ({ messages }) => messages,
  },
}
const PROVIDERS = Object.keys(SCRIPTS)

const provider = new ScriptedProvider()
let dir: string
let gateway: GatewayProcess

before(async () => {
  const origin = await provider.start()
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  await writeFile(join(dir, 'key'), 'key-of-file')
  const key = { upstream: origin, apiKeyFile: join(dir, 'key') }
  gateway = await startGatewayProcess({
    servers: {},
    scopes: [...PROVIDERS, 'vertex', 'guarded', 'titan'].map((name) => `models:${name}`),
    env: {
      AWS_ACCESS_KEY_ID: 'AKIDENV',
      AWS_SECRET_ACCESS_KEY: 'of-env',
      GOOGLE_OAUTH_ACCESS_TOKEN: 'token-of-google',
    },
    config: {
      auditPath: join(dir, 'audit.jsonl'),
      models: {
        plain: { upstream: `${origin}/v1` },
        guarded: { upstream: `${origin}/v1`, dlpProfile: 'standard' },
        gemini: { provider: 'gemini', ...key },
        vertex: { provider: 'vertex', upstream: origin, region: 'europe-west4', project: 'p' },
        converse: { provider: 'bedrock', upstream: origin },
        titan: { provider: 'bedrock', upstream: origin, model: 'amazon.titan-embed-text-v2:0' },
        claude: { provider: 'anthropic', ...key, upstream: `${origin}/v1` },
      },
      dlpProfiles: { standard: {} },
      cloudCredentials: { aws: { region: 'eu-central-1' } },
    },
  })
})

after(async () => {
  await provider.close()
  await gateway.close()
  await rm(dir, { recursive: true })
})

const openai = (route: string) =>
  new OpenAI({ baseURL: `${gateway.url}/llm/${route}/v1`, apiKey: gateway.token, maxRetries: 0 })
const claude = (route: string) =>
  new Anthropic({ baseURL: `${gateway.url}/llm/${route}`, authToken: gateway.token, apiKey: null, maxRetries: 0 })

const scriptOf = (route: string) => SCRIPTS[route] ?? assert.fail(route)
const schema = { type: 'object' as const, properties: { at: { type: 'string' } } }

/** The last outcome of a method at a route, once there are this many. */
async function outcomeOf(route: string, method: string, count: number) {
  const found = async () =>
    (await outcomesOf(join(dir, 'audit.jsonl'))).filter((one) => one.route === route && one.method === method)
  await until(async () => (await found()).length >= count, 'the outcome')
  return (await found()).at(-1) ?? assert.fail()
}

const request = {
  model: 'm',
  max_tokens: 50,
  system: 'Be brief.',
  messages: [
    {
      role: 'user' as const,
      content: [{ type: 'text' as const, text: SAID, cache_control: { type: 'ephemeral' as const } }],
    },
  ],
  tools: [{ name: 'weather', description: 'The weather.', input_schema: schema }],
}

test('Anthropic’s client gets text, tool calls and usage of every provider, whole and streamed', async () => {
  for (const route of PROVIDERS.filter((name) => name !== 'claude')) {
    const script = scriptOf(route)
    provider.reply(script.whole)
    const whole = await claude(route).messages.create(request)
    assert.equal(whole.id.slice(0, 4), 'msg_', route)
    provider.stream(script.type, script.events)
    const streamed = await claude(route).messages.stream(request).finalMessage()
    for (const message of [whole, streamed]) {
      assert.deepEqual(
        message.content.map((block) =>
          block.type === 'text' ? block.text : block.type === 'tool_use' && [block.name, block.input],
        ),
        ['Hello', ['weather', args]],
        route,
      )
      assert.equal(message.stop_reason, 'tool_use', route)
      const { input_tokens, output_tokens, cache_read_input_tokens } = message.usage
      assert.deepEqual([input_tokens, output_tokens, cache_read_input_tokens], [6, 4, 3], route)
    }
    assert.ok(JSON.stringify(script.said(JSON.parse(provider.last().body))).includes(SAID), route)
    assert.equal(provider.last().headers['anthropic-version'], undefined, route)
    const { usage, usageSource } = await outcomeOf(route, 'messages', 2)
    assert.deepEqual([usageSource, usage.prompt, usage.completion], ['reported', 9, 4], route)
  }
})

const items = {
  model: 'm',
  instructions: 'Be brief.',
  input: [{ role: 'user' as const, content: [{ type: 'input_text' as const, text: SAID }] }],
  max_output_tokens: 50,
  tools: [
    { type: 'function' as const, name: 'weather', description: 'The weather.', parameters: schema, strict: false },
  ],
}

test('a response of OpenAI’s API comes from every provider that has another one, whole and streamed', async () => {
  for (const route of PROVIDERS.filter((name) => name !== 'plain')) {
    const script = scriptOf(route)
    provider.reply(script.whole)
    const whole = await openai(route).responses.create(items)
    provider.stream(script.type, script.events)
    const streaming = openai(route).responses.stream(items)
    const types: string[] = []
    streaming.on('event', ({ type }) => void types.push(type))
    const streamed = await streaming.finalResponse()
    for (const response of [whole, streamed]) {
      assert.deepEqual([response.output_text, response.status], ['Hello', 'completed'], route)
      const called = response.output.flatMap((item) =>
        item.type === 'function_call' ? [[item.name, JSON.parse(item.arguments)]] : [],
      )
      assert.deepEqual(called, [['weather', args]], route)
      assert.deepEqual([response.usage?.input_tokens, response.usage?.output_tokens], [9, 4], route)
    }
    for (const type of [
      'response.created',
      'response.output_text.delta',
      'response.output_item.done',
      'response.completed',
    ])
      assert.ok(types.includes(type), `${route}: ${type}`)
    assert.ok(JSON.stringify(script.said(JSON.parse(provider.last().body))).includes(SAID), route)
    const { usageSource, usage } = await outcomeOf(route, 'responses', 2)
    assert.deepEqual([usageSource, usage.prompt, usage.completion, usage.cachedRead], ['reported', 9, 4, 3], route)
  }
})

test('the result of a tool goes back to every provider in both APIs', async () => {
  const turns = [
    ...request.messages,
    { role: 'assistant' as const, content: [{ type: 'tool_use' as const, id: 'c1', name: 'weather', input: args }] },
    {
      role: 'user' as const,
      content: [{ type: 'tool_result' as const, tool_use_id: 'c1', content: 'sunny and warm' }],
    },
  ]
  const back = [
    ...items.input,
    { type: 'function_call' as const, call_id: 'c1', name: 'weather', arguments: JSON.stringify(args) },
    { type: 'function_call_output' as const, call_id: 'c1', output: 'sunny and warm' },
  ]
  for (const route of PROVIDERS) {
    const script = scriptOf(route)
    provider.reply(script.whole)
    if (route !== 'claude') await claude(route).messages.create({ ...request, messages: turns })
    assert.ok(
      route === 'claude' || JSON.stringify(script.said(JSON.parse(provider.last().body))).includes('sunny and warm'),
      route,
    )
    if (route === 'plain') continue
    await openai(route).responses.create({ ...items, input: back })
    assert.ok(JSON.stringify(script.said(JSON.parse(provider.last().body))).includes('sunny and warm'), route)
  }
})

test('a member without a counterpart is refused by its name in the caller’s API, and nothing is sent', async () => {
  const sent = provider.received.length
  const param = (name: string) => (error: unknown) =>
    (error instanceof OpenAI.BadRequestError || error instanceof Anthropic.BadRequestError) &&
    String(error).includes(`${name} `)
  const message = (route: string, more: object) => claude(route).messages.create({ ...request, ...more })
  const response = (route: string, more: object) => openai(route).responses.create({ ...items, ...more })
  const one = { type: 'auto' as const, disable_parallel_tool_use: true }
  await assert.rejects(message('plain', { top_k: 5 }), param('top_k'))
  await assert.rejects(message('gemini', { tool_choice: one }), param('tool_choice.disable_parallel_tool_use'))
  await assert.rejects(message('converse', { thinking: { type: 'enabled', budget_tokens: 1024 } }), param('thinking'))
  const search = { type: 'search_result', source: 's', title: 't', content: [] }
  await assert.rejects(
    message('plain', { messages: [{ role: 'user', content: [search] }] }),
    param('messages[0].content[0].type'),
  )
  await assert.rejects(response('gemini', { previous_response_id: 'resp_1' }), /403 .*previous_response_id names/)
  await assert.rejects(response('converse', { reasoning: { effort: 'low' } }), param('reasoning.effort'))
  await assert.rejects(response('claude', { store: true }), param('store'))
  await assert.rejects(response('gemini', { input: [{ type: 'item_reference', id: 'i' }] }), /403 .*input names/)
  assert.equal(provider.received.length, sent)
})

const TOKEN = `ghp_${'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6'}`

test('a translated stream is redacted in the caller’s API, and one that breaks off ends with an error', async () => {
  const parts = [TOKEN.slice(0, 9), TOKEN.slice(9, 30), `${TOKEN.slice(30)} done`]
  provider.stream(SSE_TYPE, [
    ...parts.map((content) => chunk({ content })),
    chunk({}, 'stop'),
    Buffer.from('data: [DONE]\n\n'),
  ])
  assert.equal(await claude('guarded').messages.stream(request).finalText(), '[REDACTED:github_token] done')
  for (const route of PROVIDERS.filter((name) => name !== 'claude')) {
    const { type, events } = scriptOf(route)
    provider.stream(type, events.slice(0, 2))
    await assert.rejects(claude(route).messages.stream(request).finalMessage(), /upstream_error/, route)
  }
  provider.reply({ error: { message: 'The model is too small.' } }, 400)
  await assert.rejects(claude('plain').messages.create(request), /The model is too small\./)
})

test('embeddings come from Gemini, Vertex AI and Bedrock, as floats and as the client’s own default', async () => {
  const vectors = [
    [0.5, -0.25],
    [1, 0],
  ]
  const ask = { model: 'e', input: ['one', 'two'] }
  const close = (found: readonly (readonly number[])[]) => assert.deepEqual(found, vectors)
  provider.reply({ embeddings: vectors.map((values) => ({ values })) })
  const first = await openai('gemini').embeddings.create({ ...ask, dimensions: 2 })
  close(first.data.map(({ embedding }) => embedding))
  assert.equal(provider.last().url, '/v1beta/models/e:batchEmbedContents')
  assert.deepEqual(JSON.parse(provider.last().body), {
    requests: ask.input.map((text) => ({ model: 'models/e', content: { parts: [{ text }] }, outputDimensionality: 2 })),
  })
  provider.reply({ predictions: vectors.map((values) => ({ embeddings: { values, statistics: { token_count: 3 } } })) })
  const second = await openai('vertex').embeddings.create({ ...ask, encoding_format: 'float' })
  close(second.data.map(({ embedding }) => embedding))
  assert.deepEqual([second.usage.prompt_tokens, provider.last().url.endsWith('/models/e:predict')], [6, true])
  const { op, usage } = await outcomeOf('vertex', 'embeddings', 1)
  assert.deepEqual([op, usage.prompt], ['model.embed', 6])
  provider.reply({ embedding: vectors[0], inputTextTokenCount: 2 })
  const third = await openai('titan').embeddings.create({ model: 'titan', input: 'one' })
  assert.deepEqual([third.data[0]?.embedding, third.usage.prompt_tokens], [vectors[0], 2])
  assert.equal(provider.last().url, '/model/amazon.titan-embed-text-v2%3A0/invoke')
  await assert.rejects(openai('titan').embeddings.create(ask), /input must be one text/)
  await assert.rejects(
    openai('converse').embeddings.create({ ...ask, model: 'cohere.embed-v4' }),
    /input_type is required/,
  )
  provider.reply({ embeddings: [] })
  await assert.rejects(openai('gemini').embeddings.create(ask), /another number of vectors/)
})

test('a stream whose provider reports no usage is metered by an estimate, prompt included', async () => {
  const { events } = scriptOf('plain')
  provider.stream(
    SSE_TYPE,
    events.filter((event) => !event.includes('usage')),
  )
  assert.equal(await claude('guarded').messages.stream(request).finalText(), 'Hello')
  const { usage, usageSource } = await outcomeOf('guarded', 'messages', 2)
  assert.equal(usageSource, 'estimated')
  assert.ok(usage.prompt > 50 && usage.completion > 0, JSON.stringify(usage))
})
