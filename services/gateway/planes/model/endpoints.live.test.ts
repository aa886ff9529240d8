import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { signAws } from '@plat/http'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import OpenAI from 'openai'
import { started } from '../../testing/started.ts'
import { outcomesOf } from './testing.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** Responses of the scripted upstream below `/v1/`: a body, or the events of a stream. */
type Script = Readonly<Record<string, object | readonly string[]>>

/** A gateway with a route to a scripted upstream, and the official client. */
async function setUp(t: TestContext, script: Script, more: object = {}) {
  const seen: { path: string; body: Record<string, unknown> }[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const path = (request.url ?? '').slice('/v1/'.length)
    seen.push({ path, body: JSON.parse(Buffer.concat(chunks).toString()) })
    const answer = script[path] ?? {}
    if (!Array.isArray(answer)) return void response.writeHead(200, JSON_TYPE).end(JSON.stringify(answer))
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(answer.join(''))
  })
  const port = await listening(server)
  t.after(() => closed(server))
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const models = { r: { upstream: `http://127.0.0.1:${port}/v1`, ...more } }
  const { gateway, issuer } = await started(t, { models, auditPath })
  const token = issuer.token({ scope: 'models:r' })
  const client = new OpenAI({ baseURL: `${gateway.url}/llm/r/v1`, apiKey: token, maxRetries: 0 })
  const outcome = async () => {
    await until(async () => (await outcomesOf(auditPath)).length > 0, 'the outcome')
    return (await outcomesOf(auditPath))[0] ?? assert.fail()
  }
  return { client, seen, outcome }
}

test('embeddings are relayed and their input is counted', async (t) => {
  const vector = { object: 'embedding', index: 0, embedding: [0.5, -0.25] }
  const answer = { object: 'list', model: 'e-1', data: [vector], usage: { prompt_tokens: 3, total_tokens: 3 } }
  const { client, seen, outcome } = await setUp(t, { embeddings: answer }, { aliases: { e: 'e-1' } })
  const request = { model: 'e', input: ['one', 'two'], encoding_format: 'float' as const }
  assert.deepEqual((await client.embeddings.create(request)).data, [vector])
  assert.deepEqual(seen, [{ path: 'embeddings', body: { ...request, model: 'e-1' } }])
  const { op, method, usage, usageSource } = await outcome()
  assert.deepEqual([op, method, usageSource], ['model.embed', 'embeddings', 'reported'])
  assert.deepEqual(usage, { prompt: 3, completion: 0, cachedRead: 0, cachedWrite: 0, reasoning: 0 })
})

const response = (usage: object | null) => ({ id: 'resp_1', object: 'response', output: [], usage })
const used = { input_tokens: 5, output_tokens: 7, total_tokens: 12, output_tokens_details: { reasoning_tokens: 4 } }
const named = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`

test('a response is relayed, its limit is written where this endpoint reads it, and its usage is read', async (t) => {
  const { client, seen, outcome } = await setUp(t, { responses: response(used) }, { maxTokensPerRequest: 50 })
  const { data, response: head } = await client.responses.create({ model: 'm', input: 'hi' }).withResponse()
  assert.equal(data.id, 'resp_1')
  assert.deepEqual([seen[0]?.body.max_output_tokens, head.headers.get('x-plat-max-tokens')], [50, '50'])
  const { usage, method } = await outcome()
  assert.deepEqual([method, usage.prompt, usage.completion, usage.reasoning], ['responses', 5, 7, 4])
})

test('a streamed response is whole when its last event came, and not before', async (t) => {
  const events = [
    named('response.created', { response: response(null), sequence_number: 0 }),
    named('response.output_text.delta', { delta: 'Hello', item_id: 'i', sequence_number: 1 }),
    named('response.completed', { response: response(used), sequence_number: 2 }),
  ]
  const request = { model: 'm', input: 'hi', stream: true } as const
  const whole = await setUp(t, { responses: events })
  const types = []
  for await (const event of await whole.client.responses.create(request)) types.push(event.type)
  assert.deepEqual(types, ['response.created', 'response.output_text.delta', 'response.completed'])
  assert.deepEqual(whole.seen[0]?.body, request, 'usage need not be requested')
  assert.equal((await whole.outcome()).usageSource, 'reported')
  const broken = await setUp(t, { responses: events.slice(0, 2) })
  const read = async () => {
    for await (const event of await broken.client.responses.create(request))
      assert.notEqual(event.type, 'response.completed')
  }
  await assert.rejects(read(), (error) => error instanceof OpenAI.APIError && error.code === 'upstream_error')
  assert.equal((await broken.outcome()).result, 'failed')
})

test('requests that would run in the background at the provider are refused before they are forwarded', async (t) => {
  const { client, seen } = await setUp(
    t,
    { responses: { output: [] } },
    { providerTools: ['file_search', 'web_search_preview_2025_03_11'] },
  )
  const cases: readonly (readonly [string, string])[] = [
    ['{"background":true}', 'invalid_request'],
    ['{"tools":[{"type":"code_interpreter"}]}', 'provider_hosted_tool'],
    ['{"tools":[{"type":"web_search"}]}', 'provider_hosted_tool'],
    ['{"tools":[{"type":"mcp","server_url":"https://x","server_label":"x"}]}', 'provider_hosted_tool'],
  ]
  for (const [more, code] of cases) {
    const work = client.responses.create({ model: 'm', input: 'hi', ...JSON.parse(more) })
    await assert.rejects(work, (error) => error instanceof OpenAI.APIError && error.code === code, more)
  }
  assert.equal(seen.length, 0)
  const allowed = '{"tools":[{"type":"file_search"},{"type":"web_search_preview_2025_03_11"},{"type":"function"}]}'
  await client.responses.create({ model: 'm', input: 'hi', ...JSON.parse(allowed) })
  assert.equal(seen.length, 1)
})

test('text that goes on from a prompt is relayed, whole and streamed', async (t) => {
  const usage = { prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 }
  const chunk = (text: string, more: object) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, text }], ...more })}\n\n`
  const events = [
    chunk('a', {}),
    chunk('b', {}),
    `data: ${JSON.stringify({ choices: [], usage })}\n\n`,
    'data: [DONE]\n\n',
  ]
  const { client, seen, outcome } = await setUp(t, { completions: events })
  let text = ''
  const stream = await client.completions.create({ model: 'm', prompt: 'x', stream: true })
  for await (const { choices } of stream)
    text += choices[0]?.text ?? assert.fail('the chunk of usage was not requested')
  assert.equal(text, 'ab')
  assert.deepEqual(seen[0]?.body.stream_options, { include_usage: true })
  assert.deepEqual([(await outcome()).method, (await outcome()).usage.completion], ['completions', 3])
})

test('Azure is reached below its modes, with its key where it looks for it', async (t) => {
  // Shows D3.route.provider.azure-openai, D3.route.mode.azure-openai, D3.route.auth.type.bearer, D3.route.auth.tokenFile,
  // D3.route.auth.type.none, D2.model.apiVersion
  const requests: string[] = []
  const server = createServer((request, response) => {
    const { authorization, 'api-key': key } = request.headers
    requests.push(`${request.url} ${key ?? authorization ?? 'nothing'}`)
    request.resume().once('end', () => response.writeHead(200, JSON_TYPE).end('{"choices":[]}'))
  })
  const port = await listening(server)
  t.after(() => closed(server))
  const dir = tempFolder()
  await writeFile(join(dir, 'key'), 'secret')
  const azure = { provider: 'azure-openai', upstream: `http://127.0.0.1:${port}` }
  const models = {
    v1: { ...azure, apiKeyFile: join(dir, 'key') },
    named: {
      ...azure,
      mode: 'deployments',
      aliases: { gpt: 'my gpt' },
      auth: { type: 'bearer', tokenFile: join(dir, 'key') },
    },
    dated: { ...azure, mode: 'deployments', apiVersion: '2025-01-01', auth: { type: 'none' } },
  }
  const { gateway, issuer } = await started(t, { models })
  const token = issuer.token({
    scope: Object.keys(models)
      .map((name) => `models:${name}`)
      .join(' '),
  })
  for (const route of Object.keys(models)) {
    const client = new OpenAI({ baseURL: `${gateway.url}/llm/${route}/v1`, apiKey: token, maxRetries: 0 })
    await client.chat.completions.create({ model: 'gpt', messages: [] })
  }
  assert.deepEqual(requests, [
    '/openai/v1/chat/completions secret',
    '/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21 Bearer secret',
    '/openai/deployments/gpt/chat/completions?api-version=2025-01-01 nothing',
  ])
})

/** Requests received by a server that responds to every chat completion, and the environment variables of the gateway. */
async function requestsTo(t: TestContext, route: object, env: Readonly<Record<string, string>> = {}) {
  const seen: { url: string; headers: IncomingHttpHeaders; body: string }[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { url = '', headers } = request
    seen.push({ url, headers, body: Buffer.concat(chunks).toString() })
    response.writeHead(200, JSON_TYPE).end('{"choices":[]}')
  })
  const port = await listening(server)
  t.after(() => closed(server))
  const upstream = `http://127.0.0.1:${port}/openai/v1`
  const gateway = await startGatewayProcess({
    servers: {},
    scopes: ['models:r'],
    env,
    config: { models: { r: { upstream, ...route } }, cloudCredentials: { aws: { region: 'eu-central-1' } } },
  })
  t.after(() => gateway.close())
  const client = new OpenAI({ baseURL: `${gateway.url}/llm/r/v1`, apiKey: gateway.token, maxRetries: 0 })
  await client.chat.completions.create({ model: 'openai.gpt-oss-20b', messages: [{ role: 'user', content: 'hé' }] })
  return { origin: `http://127.0.0.1:${port}`, ...(seen[0] ?? assert.fail()) }
}

test('Bedrock gets a signed request: with the keys of the environment, or with those of files', async (t) => {
  // Shows D3.route.auth.type.aws-sigv4, D3.route.auth.accessKeyIdFile, D3.route.auth.secretAccessKeyFile, D3.route.auth.sessionTokenFile,
  // D3.route.auth.signingService, D3.cloudCredentials.aws.region
  const env = { AWS_ACCESS_KEY_ID: 'AKIDENV', AWS_SECRET_ACCESS_KEY: 'of-env', AWS_SESSION_TOKEN: 'session-of-env' }
  const dir = tempFolder()
  for (const name of ['id', 'secret', 'session']) await writeFile(join(dir, name), `${name}-of-file\n`)
  const files = {
    type: 'aws-sigv4',
    accessKeyIdFile: join(dir, 'id'),
    secretAccessKeyFile: join(dir, 'secret'),
    sessionTokenFile: join(dir, 'session'),
    signingService: 'other',
  }
  const bedrock = { provider: 'bedrock', mode: 'openai' }
  const cases = [
    [
      {},
      'eu-central-1',
      'bedrock',
      { accessKeyId: 'AKIDENV', secretAccessKey: 'of-env', sessionToken: 'session-of-env' },
    ],
    [
      { auth: files, region: 'us-east-1' },
      'us-east-1',
      'other',
      { accessKeyId: 'id-of-file', secretAccessKey: 'secret-of-file', sessionToken: 'session-of-file' },
    ],
  ] as const
  for (const [more, region, service, credentials] of cases) {
    const { origin, url, headers, body } = await requestsTo(t, { ...bedrock, ...more }, env)
    assert.equal(url, '/openai/v1/chat/completions')
    const date = String(headers['x-amz-date'])
    const at = Date.parse(date.replace(/^(....)(..)(..T..)(..)(..)Z$/, '$1-$2-$3:$4:$5Z'))
    const signed = signAws({ method: 'POST', url: new URL(origin + url), body, region, service, at }, credentials)
    assert.deepEqual(
      [headers.authorization, headers['x-amz-security-token']],
      [signed.authorization, credentials.sessionToken],
    )
  }
})

test('Vertex AI gets the token of the environment, or that of a file', async (t) => {
  // Shows D3.route.auth.tokenEnv
  const dir = tempFolder()
  await writeFile(join(dir, 'token'), 'of-file')
  const vertex = { provider: 'vertex', mode: 'openai', region: 'europe-west4', project: 'p' }
  const env = { GOOGLE_OAUTH_ACCESS_TOKEN: 'of-env', OTHER: 'of-other' }
  for (const [auth, token] of [
    [{}, 'of-env'],
    [{ type: 'gcp', tokenEnv: 'OTHER' }, 'of-other'],
    [{ type: 'gcp', tokenFile: join(dir, 'token') }, 'of-file'],
  ] as const) {
    assert.equal((await requestsTo(t, { ...vertex, auth }, env)).headers.authorization, `Bearer ${token}`)
  }
})
