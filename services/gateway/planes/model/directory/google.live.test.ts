import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ApiError, type GenerateContentParameters, type GenerateContentResponse, GoogleGenAI } from '@google/genai'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { ScriptedProvider } from '@plat/testkit/model/scripted-provider'
import { until } from '@plat/testkit/until'
import { outcomesOf } from '../testing.ts'
import { SSE_TYPE } from '../translate/streams.ts'
import { sseEvent } from '../translate/testing.ts'

const TOKEN = `ghp_${'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6'}`
const ROUTES = ['gemini', 'limited', 'guarded', 'plain', 'claude']

const provider = new ScriptedProvider()
let gateway: GatewayProcess
let dir: string

before(async () => {
  const origin = await provider.start()
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  await writeFile(join(dir, 'key'), 'key-of-file')
  const key = { upstream: origin, apiKeyFile: join(dir, 'key') }
  gateway = await startGatewayProcess({
    servers: {},
    scopes: ROUTES.map((name) => `models:${name}`),
    config: {
      auditPath: join(dir, 'audit.jsonl'),
      models: {
        gemini: { provider: 'gemini', ...key, model: 'gemini-3', aliases: { quick: 'gemini-3-flash' } },
        limited: { provider: 'gemini', ...key, model: 'gemini-2', maxTokensPerRequest: 20 },
        guarded: { provider: 'gemini', ...key, model: 'gemini-1', dlpProfile: 'standard' },
        plain: { upstream: `${origin}/v1`, model: 'gpt-5-mini' },
        claude: { provider: 'anthropic', ...key, upstream: `${origin}/v1`, model: 'claude-5' },
      },
      dlpProfiles: { standard: {} },
    },
  })
})

after(async () => {
  await provider.close()
  await gateway.close()
  await rm(dir, { recursive: true })
})

const google = (path = '/llm') =>
  new GoogleGenAI({ apiKey: gateway.token, httpOptions: { baseUrl: gateway.url + path } }).models
const ask = (model: string, more: Partial<GenerateContentParameters> = {}) => ({
  model,
  contents: 'Say hello.',
  ...more,
})

async function textOf(chunks: Promise<AsyncIterable<GenerateContentResponse>>): Promise<string> {
  let text = ''
  for await (const chunk of await chunks) text += chunk.text ?? ''
  return text
}

async function outcomeOf(route: string, count = 1) {
  const found = async () => (await outcomesOf(join(dir, 'audit.jsonl'))).filter((one) => one.route === route)
  await until(async () => (await found()).length >= count, 'the outcome')
  return (await found()).at(-1) ?? assert.fail()
}

const candidate = (parts: readonly object[], finishReason?: string) => ({
  candidates: [{ content: { role: 'model', parts }, finishReason, index: 0 }],
})
const usageMetadata = { promptTokenCount: 4, candidatesTokenCount: 2, thoughtsTokenCount: 3, totalTokenCount: 9 }

test('Google’s client reaches Gemini with the same bytes and the key of the route, whole, streamed and counted', async () => {
  provider.reply({ ...candidate([{ text: 'Hello' }], 'STOP'), usageMetadata })
  const whole = await google().generateContent(ask('gemini', { config: { temperature: 0.5 } }))
  assert.equal(whole.text, 'Hello')
  assert.equal(provider.last().url, '/v1beta/models/gemini-3:generateContent')
  assert.equal(provider.last().headers['x-goog-api-key'], 'key-of-file')
  assert.equal(
    provider.last().body,
    '{"contents":[{"parts":[{"text":"Say hello."}],"role":"user"}],"generationConfig":{"temperature":0.5}}',
  )
  const { method, usage, usageSource, tool } = await outcomeOf('gemini')
  assert.deepEqual([method, usageSource, tool], ['generateContent', 'reported', 'gemini-3'])
  assert.deepEqual(usage, { prompt: 4, completion: 5, cachedRead: 0, cachedWrite: 0, reasoning: 3 })
  provider.stream(SSE_TYPE, [
    sseEvent(candidate([{ text: 'Hel' }])),
    sseEvent({ ...candidate([{ text: 'lo' }], 'STOP'), usageMetadata }),
  ])
  assert.equal(await textOf(google('/llm/gemini').generateContentStream(ask('quick'))), 'Hello')
  assert.equal(provider.last().url, '/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse')
  assert.equal((await outcomeOf('gemini', 2)).usage.completion, 5)
  provider.reply({ totalTokens: 7 })
  assert.equal((await google().countTokens({ model: 'gemini', contents: 'x' })).totalTokens, 7)
  assert.equal(provider.last().url, '/v1beta/models/gemini-3:countTokens')
})

test('a limit of the route is written into the configuration, and only there', async () => {
  provider.reply(candidate([{ text: 'Hello' }], 'STOP'))
  const limits = [{}, { temperature: 1 }, { maxOutputTokens: 50 }, { maxOutputTokens: 7 }]
  const sent: unknown[] = []
  for (const config of limits) {
    await google().generateContent(ask('limited', { config }))
    sent.push(JSON.parse(provider.last().body).generationConfig)
  }
  assert.deepEqual(sent, [
    { maxOutputTokens: 20 },
    { temperature: 1, maxOutputTokens: 20 },
    { maxOutputTokens: 20 },
    { maxOutputTokens: 7 },
  ])
})

const weather = {
  name: 'weather',
  description: 'The weather.',
  parametersJsonSchema: { type: 'object', properties: {} },
}
const call = { id: 'c1', type: 'function', function: { name: 'weather', arguments: '{"at":"Oslo"}' } }
const chunk = (delta: object, finish_reason: string | null = null) =>
  sseEvent({ choices: [{ index: 0, delta, finish_reason }] })

test('Google’s client gets text and tool calls of providers with other APIs, and sends results back', async () => {
  const tools = [{ functionDeclarations: [weather] }]
  const message = { role: 'assistant', content: 'Hello', tool_calls: [call] }
  const usage = { prompt_tokens: 9, completion_tokens: 4 }
  provider.reply({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }], usage })
  const request = ask('openai/gpt-5-mini', { config: { tools, systemInstruction: 'Be brief.', maxOutputTokens: 50 } })
  const whole = await google().generateContent(request)
  assert.equal(whole.candidates?.[0]?.content?.parts?.[0]?.text, 'Hello')
  assert.deepEqual(whole.functionCalls, [{ id: 'c1', name: 'weather', args: { at: 'Oslo' } }])
  assert.equal(whole.usageMetadata?.promptTokenCount, 9)
  const { messages, max_completion_tokens: limit, tools: sent } = JSON.parse(provider.last().body)
  assert.deepEqual([messages[0], limit], [{ role: 'system', content: 'Be brief.' }, 50])
  assert.equal(sent[0].function.name, 'weather')
  provider.stream(SSE_TYPE, [
    chunk({ content: 'Hel' }),
    chunk({ content: 'lo' }),
    chunk({ tool_calls: [{ index: 0, ...call }] }),
    chunk({}, 'tool_calls'),
    sseEvent({ choices: [], usage }),
    Buffer.from('data: [DONE]\n\n'),
  ])
  const found: unknown[] = []
  for await (const one of await google().generateContentStream(request))
    found.push(one.text, one.functionCalls?.[0]?.args)
  assert.deepEqual(
    found.filter((one) => one !== undefined),
    ['Hel', 'lo', { at: 'Oslo' }],
  )
  assert.equal((await outcomeOf('plain', 2)).usage.prompt, 9)
  const claude = {
    type: 'message',
    content: [{ type: 'text', text: 'Sunny.' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 1, output_tokens: 2 },
  }
  provider.reply(claude)
  const contents = [
    { role: 'user', parts: [{ text: 'Where is it sunny?' }] },
    { role: 'model', parts: [{ functionCall: { name: 'weather', args: { at: 'Oslo' } } }] },
    { role: 'user', parts: [{ functionResponse: { name: 'weather', response: { sky: 'clear' } } }] },
  ]
  assert.equal((await google().generateContent({ model: 'claude', contents, config: { tools } })).text, 'Sunny.')
  const [, use, result] = JSON.parse(provider.last().body).messages
  assert.deepEqual([use.content[0].name, result.content[0].content], ['weather', '{"sky":"clear"}'])
  assert.equal(result.content[0].tool_use_id, use.content[0].id)
})

test('refusals and failures are errors of Google’s API with the text of the refusal', async () => {
  const sent = provider.received.length
  const refused = (status: number, text: RegExp) => (error: unknown) => {
    assert.ok(error instanceof ApiError)
    assert.equal(error.status, status)
    assert.match(error.message, text)
    return true
  }
  const search = { config: { tools: [{ googleSearch: {} }] } }
  await assert.rejects(
    google().generateContent(ask('gemini', search)),
    refused(403, /google_search would run at the provider/),
  )
  await assert.rejects(
    google().generateContent(ask('unknown')),
    refused(404, /there is gemini, .*"status":"NOT_FOUND"/),
  )
  const topK = { config: { topK: 3 } }
  await assert.rejects(
    google().generateContent(ask('plain', topK)),
    refused(400, /generationConfig\.topK has no counterpart/),
  )
  const snake = await fetch(`${gateway.url}/llm/v1beta/models/gemini:generateContent`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-goog-api-key': gateway.token },
    body: '{"contents":[],"generation_config":{"max_output_tokens":100000}}',
  })
  assert.equal(snake.status, 400)
  assert.match(await snake.text(), /generation_config is not a member that the gateway reads: names are in camelCase/)
  const unknownRoute = new GoogleGenAI({ apiKey: 'x.y.z', httpOptions: { baseUrl: `${gateway.url}/llm` } })
  await assert.rejects(unknownRoute.models.generateContent(ask('gemini')), refused(401, /UNAUTHENTICATED/))
  assert.equal(provider.received.length, sent)
  provider.stream(SSE_TYPE, [sseEvent(candidate([{ text: 'Hel' }]))])
  await assert.rejects(
    textOf(google().generateContentStream(ask('gemini'))),
    /The model call failed: the stream ended too early\. .*Decision/,
  )
})

test('texts are redacted across chunks and parts, and so are arguments', async () => {
  const parts = [TOKEN.slice(0, 9), TOKEN.slice(9, 30), `${TOKEN.slice(30)} done`]
  provider.stream(SSE_TYPE, [
    sseEvent(candidate([{ text: parts[0] }])),
    sseEvent(candidate([{ text: '' }, { text: parts[1] }])),
    sseEvent(candidate([{ text: parts[2] }, { functionCall: { name: 'send', args: { key: TOKEN } } }])),
    sseEvent(candidate([{ text: `, and ${TOKEN}` }], 'STOP')),
  ])
  const found: GenerateContentResponse[] = []
  for await (const one of await google().generateContentStream(ask('guarded', { contents: `mine is ${TOKEN}` })))
    found.push(one)
  const mark = '[REDACTED:github_token]'
  assert.equal(found.map(({ text }) => text ?? '').join(''), `${mark} done, and ${mark}`)
  assert.deepEqual(
    found.flatMap(({ functionCalls }) => functionCalls ?? []).map(({ args }) => args),
    [{ key: mark }],
  )
  assert.ok(provider.last().body.includes(mark) && !provider.last().body.includes(TOKEN))
  assert.equal(provider.last().url, '/v1beta/models/gemini-1:streamGenerateContent?alt=sse')
  provider.reply(candidate([{ text: `it is ${TOKEN}` }], 'STOP'))
  assert.equal((await google().generateContent(ask('guarded'))).text, `it is ${mark}`)
})

test('vectors come from Gemini and from providers of OpenAI’s API, under the model of the route', async () => {
  const vectors = [
    [0.5, -0.25],
    [1, 0],
  ]
  const texts = ['one', `two ${TOKEN}`]
  const valuesOf = async (model: string, config: object = {}) => {
    const { embeddings = [] } = await google().embedContent({ model, contents: texts, config })
    return embeddings.map(({ values }) => values)
  }
  provider.reply({ embeddings: vectors.map((values) => ({ values })) })
  assert.deepEqual(await valuesOf('guarded', { taskType: 'CLUSTERING', outputDimensionality: 2 }), vectors)
  assert.deepEqual(
    [provider.last().url, JSON.parse(provider.last().body)],
    [
      '/v1beta/models/gemini-1:batchEmbedContents',
      {
        requests: ['one', 'two [REDACTED:github_token]'].map((text) => ({
          model: 'models/gemini-1',
          content: { parts: [{ text }] },
          outputDimensionality: 2,
          taskType: 'CLUSTERING',
        })),
      },
    ],
  )
  const data = vectors.map((embedding, index) => ({ embedding, index })).toReversed()
  provider.reply({ data, usage: { prompt_tokens: 7, total_tokens: 7 } })
  assert.deepEqual(await valuesOf('plain'), vectors)
  assert.deepEqual(
    [provider.last().url, JSON.parse(provider.last().body)],
    ['/v1/embeddings', { model: 'gpt-5-mini', input: texts, encoding_format: 'float' }],
  )
  await until(async () => (await embedded()).length === 2, 'both outcomes')
  const [estimated, reported] = await embedded()
  assert.deepEqual([estimated.usageSource, reported.usageSource, reported.usage.prompt], ['estimated', 'reported', 7])
  await assert.rejects(valuesOf('plain', { taskType: 'CLUSTERING' }), /requests\[\]\.taskType has no counterpart/)
  await assert.rejects(valuesOf('claude'), /not built yet in this version for the provider anthropic/)
  provider.reply({ embeddings: [] })
  await assert.rejects(valuesOf('gemini'), /another number of vectors/)
})

/** Outcomes of requests for vectors. */
async function embedded() {
  return (await outcomesOf(join(dir, 'audit.jsonl'))).filter(({ op }) => op === 'model.embed')
}

test('one vector comes without a list, and members under a second name are refused', async () => {
  const call = (body: object, verb = 'embedContent', model = 'gemini') =>
    fetch(`${gateway.url}/llm/v1beta/models/${model}:${verb}`, {
      method: 'POST',
      headers: { 'x-goog-api-key': gateway.token, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const content = { parts: [{ text: 'one' }] }
  provider.reply({ embeddings: [{ values: [1, 2] }] })
  const response = await call({ content, title: 'first' })
  assert.deepEqual([response.status, await response.json()], [200, { embedding: { values: [1, 2] } }])
  assert.equal(JSON.parse(provider.last().body).requests[0].title, 'first')
  const sent = provider.received.length
  const refused: readonly [param: string, body: object, verb?: string, model?: string][] = [
    ['task_type', { content, task_type: 'CLUSTERING' }],
    ['content.inline', { content: { ...content, inline: {} } }],
    ['content.parts', { content: { parts: [{ text: 'one' }, { text: 'two' }] } }],
    ['content.parts', { content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'aaaa' } }] } }],
    ['content.parts', {}],
    ['requests', { requests: [] }, 'batchEmbedContents'],
    ['requests', { requests: Array.from({ length: 101 }, () => ({ content })) }, 'batchEmbedContents'],
    [
      'requests[1].output_dimensionality',
      { requests: [{ content }, { content, output_dimensionality: 1 }] },
      'batchEmbedContents',
    ],
    ['requests[].taskType', { requests: [{ content }, { content, taskType: 'CLUSTERING' }] }, 'batchEmbedContents'],
    ['title', { content, title: 'x' }, 'embedContent', 'plain'],
  ]
  for (const [param, body, verb, model] of refused) {
    const response = await call(body, verb, model)
    const { error } = JSON.parse(await response.text())
    assert.deepEqual([response.status, error.details[0].metadata.param], [400, param], JSON.stringify(error))
  }
  assert.equal(provider.received.length, sent)
})

test('the list of models has pages in Google’s format', async () => {
  const names: (string | undefined)[] = []
  for await (const model of await google().list({ config: { pageSize: 2, queryBase: true } })) names.push(model.name)
  assert.equal(names.length, new Set(names).size)
  for (const name of ['models/gemini', 'models/quick', 'models/openai/gpt-5-mini'])
    assert.ok(names.includes(name), name)
  assert.equal((await google().get({ model: 'models/quick' })).name, 'models/quick')
})

test('a key is a session token below /llm only, and never before Authorization', async () => {
  const status = async (path: string, headers: Readonly<Record<string, string>>) =>
    (await fetch(gateway.url + path, { headers })).status
  const key = { 'x-goog-api-key': gateway.token }
  assert.equal(await status('/llm/v1beta/models', key), 200)
  assert.equal(await status('/llm/v1/models', { 'x-api-key': gateway.token }), 200)
  assert.equal(await status('/mcp/notes', key), 401)
  assert.equal(await status('/llm/v1beta/models', { ...key, authorization: 'Bearer x.y.z' }), 401)
})
