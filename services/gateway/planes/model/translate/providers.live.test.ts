import assert from 'node:assert/strict'
import { createVerify, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { signAws } from '@plat/http'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { ScriptedProvider } from '@plat/testkit/model/scripted-provider'
import { until } from '@plat/testkit/until'
import OpenAI from 'openai'
import { outcomesOf } from '../testing.ts'
import { AWS_STREAM_TYPE, SSE_TYPE } from './streams.ts'
import { awsEvent, awsMessage, sseEvent } from './testing.ts'

/** Every provider in one server. */
const provider = new ScriptedProvider()
let origin: string
let dir: string
let gateway: GatewayProcess
let ociKey: KeyObject

const ROUTES = [
  'converse',
  'gemini',
  'vertex',
  'claude',
  'claude-aws',
  'claude-gcp',
  'oci',
  'spare',
  'guarded',
  'azure',
]
const TOKEN = `ghp_${'aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6'}`
const AWS = { accessKeyId: 'AKIDENV', secretAccessKey: 'of-env', sessionToken: 'session-of-env' }

before(async () => {
  origin = await provider.start()
  dir = await mkdtemp(join(os.tmpdir(), 'plat-'))
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  ociKey = publicKey
  await writeFile(join(dir, 'oci.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
  await writeFile(join(dir, 'key'), 'key-of-file')
  const key = { upstream: origin, apiKeyFile: join(dir, 'key') }
  const place = { region: 'europe-west4', project: 'p' }
  const converse = { provider: 'bedrock', upstream: origin, model: 'eu.amazon.nova-lite-v1:0' }
  const plain = { upstream: `${origin}/plain/v1`, model: 'other' }
  gateway = await startGatewayProcess({
    servers: {},
    scopes: ROUTES.map((name) => `models:${name}`),
    env: {
      AWS_ACCESS_KEY_ID: AWS.accessKeyId,
      AWS_SECRET_ACCESS_KEY: AWS.secretAccessKey,
      AWS_SESSION_TOKEN: AWS.sessionToken,
      GOOGLE_OAUTH_ACCESS_TOKEN: 'token-of-google',
      OCI_CLI_USER: 'user',
      OCI_CLI_TENANCY: 'tenancy',
      OCI_CLI_FINGERPRINT: 'aa:bb',
      OCI_CLI_KEY_FILE: join(dir, 'oci.pem'),
    },
    config: {
      auditPath: join(dir, 'audit.jsonl'),
      models: {
        converse,
        guarded: { ...converse, dlpProfile: 'standard' },
        spare: { ...converse, fallbacks: [plain] },
        gemini: { provider: 'gemini', ...key },
        vertex: { provider: 'vertex', upstream: origin, ...place },
        claude: { provider: 'anthropic', ...key, upstream: `${origin}/v1` },
        'claude-aws': { provider: 'anthropic', mode: 'bedrock', upstream: origin, region: 'eu-west-1' },
        'claude-gcp': { provider: 'anthropic', mode: 'vertex', upstream: origin, ...place },
        oci: { provider: 'oci-genai', upstream: origin, region: 'eu-frankfurt-1', project: 'ocid1.compartment.oc1..a' },
        azure: { provider: 'azure-openai', upstream: origin },
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

const client = (route: string) =>
  new OpenAI({ baseURL: `${gateway.url}/llm/${route}/v1`, apiKey: gateway.token, maxRetries: 0 })
const claude = (route: string) =>
  new Anthropic({ baseURL: `${gateway.url}/llm/${route}`, authToken: gateway.token, apiKey: null, maxRetries: 0 })
const chat = { model: 'm', messages: [{ role: 'user' as const, content: 'Say hello.' }] }
const message = { model: 'claude-test', max_tokens: 10, messages: chat.messages }

async function streamed(route: string, more: object = {}) {
  let text = ''
  let finish: string | null = null
  for await (const { choices } of await client(route).chat.completions.create({ ...chat, ...more, stream: true })) {
    text += choices[0]?.delta.content ?? ''
    finish = choices[0]?.finish_reason ?? finish
  }
  return { text, finish }
}

async function outcomeOf(route: string) {
  const found = async () => (await outcomesOf(join(dir, 'audit.jsonl'))).findLast((one) => one.route === route)
  await until(async () => (await found()) !== undefined, 'the outcome')
  return (await found()) ?? assert.fail()
}

/** Throws unless the last request was signed by these credentials. */
function assertSigned(region: string): void {
  const { url, headers, body } = provider.last()
  const date = String(headers['x-amz-date'])
  const at = Date.parse(date.replace(/^(....)(..)(..T..)(..)(..)Z$/, '$1-$2-$3:$4:$5Z'))
  const request = { method: 'POST', url: new URL(origin + url), body, region, service: 'bedrock', at }
  assert.equal(headers.authorization, signAws(request, AWS).authorization)
  assert.equal(headers['x-amz-security-token'], AWS.sessionToken)
}

const usage = { inputTokens: 5, outputTokens: 2, totalTokens: 11, cacheReadInputTokens: 3, cacheWriteInputTokens: 1 }
const hello = { output: { message: { content: [{ text: 'Hello' }] } }, stopReason: 'end_turn', usage }
const helloEvents = [
  awsEvent('contentBlockDelta', { delta: { text: 'Hel' } }),
  awsEvent('contentBlockDelta', { delta: { text: 'lo' } }),
  awsEvent('messageStop', { stopReason: 'end_turn' }),
  awsEvent('metadata', { usage }),
]

test('a chat reaches Converse signed, and its answer comes back whole and streamed, with what was used', async () => {
  // Shows D3.route.provider.bedrock, D3.route.mode.bedrock, D2.model.adapter.bedrock
  provider.reply(hello)
  const { choices, usage: tokens } = await client('converse').chat.completions.create({ ...chat, max_tokens: 9 })
  assert.deepEqual([choices[0]?.message.content, choices[0]?.finish_reason], ['Hello', 'stop'])
  assert.deepEqual(
    [tokens?.prompt_tokens, tokens?.completion_tokens, tokens?.prompt_tokens_details?.cached_tokens],
    [9, 2, 3],
  )
  assert.equal(provider.last().url, '/model/eu.amazon.nova-lite-v1%3A0/converse')
  assert.deepEqual(JSON.parse(provider.last().body), {
    messages: [{ role: 'user', content: [{ text: 'Say hello.' }] }],
    inferenceConfig: { maxTokens: 9 },
  })
  assertSigned('eu-central-1')
  provider.stream(AWS_STREAM_TYPE, helloEvents)
  assert.deepEqual(await streamed('converse'), { text: 'Hello', finish: 'stop' })
  assert.equal(provider.last().url, '/model/eu.amazon.nova-lite-v1%3A0/converse-stream')
  assertSigned('eu-central-1')
  await until(
    async () => (await outcomesOf(join(dir, 'audit.jsonl'))).filter((one) => one.route === 'converse').length === 2,
    'both outcomes',
  )
  const { usage: counted, usageSource, result } = await outcomeOf('converse')
  assert.deepEqual(counted, { prompt: 9, completion: 2, cachedRead: 3, cachedWrite: 1, reasoning: 0 })
  assert.deepEqual([usageSource, result], ['reported', 'completed'])
})

test('a refusal of the provider, an error in its stream and a stream that breaks off reach the client as errors', async () => {
  const refused = (status: number) => (error: unknown) => error instanceof OpenAI.APIError && error.status === status
  provider.reply({ message: 'The model is too small.' }, 400)
  await assert.rejects(client('converse').chat.completions.create(chat), (error) => {
    return refused(400)(error) && String(error).includes('The model is too small.')
  })
  provider.reply({ message: 'slow down' }, 429)
  await assert.rejects(client('converse').chat.completions.create(chat), refused(429))
  provider.reply({ message: `no access for ${AWS.accessKeyId}` }, 403)
  await assert.rejects(client('converse').chat.completions.create(chat), (error) => {
    return error instanceof OpenAI.APIError && error.code === 'upstream_credential' && !String(error).includes('AKID')
  })
  const exception = awsMessage({ ':message-type': 'exception', ':exception-type': 'throttlingException' }, '{}')
  const torn = Buffer.from(helloEvents[1] ?? '').fill(0, 30, 40)
  for (const broken of [[...helloEvents.slice(0, 1), exception], helloEvents.slice(0, 2), [torn]]) {
    provider.stream(AWS_STREAM_TYPE, broken)
    await assert.rejects(
      streamed('converse'),
      (error) => error instanceof OpenAI.APIError && error.code === 'upstream_error',
    )
  }
})

test('a member that the provider does not support is refused by its name, or sent to an endpoint that supports it', async () => {
  const before = provider.received.length
  await assert.rejects(client('converse').chat.completions.create({ ...chat, seed: 1 }), (error) => {
    return error instanceof OpenAI.APIError && error.status === 400 && error.param === 'seed'
  })
  assert.equal(provider.received.length, before)
  provider.reply({ choices: [{ index: 0, message: { role: 'assistant', content: 'other' }, finish_reason: 'stop' }] })
  const { choices } = await client('spare').chat.completions.create({ ...chat, seed: 1 })
  assert.equal(choices[0]?.message.content, 'other')
  assert.deepEqual([provider.last().url, provider.received.length], ['/plain/v1/chat/completions', before + 1])
})

test('a translated stream is redacted like any other', async () => {
  const parts = [TOKEN.slice(0, 9), TOKEN.slice(9, 30), TOKEN.slice(30), ' done']
  const events = parts.map((text) => awsEvent('contentBlockDelta', { delta: { text } }))
  provider.stream(AWS_STREAM_TYPE, [...events, ...helloEvents.slice(2)])
  assert.deepEqual(await streamed('guarded', { messages: [{ role: 'user', content: `mine is ${TOKEN}` }] }), {
    text: '[REDACTED:github_token] done',
    finish: 'stop',
  })
  assert.ok(provider.last().body.includes('[REDACTED:github_token]') && !provider.last().body.includes(TOKEN))
})

test('a chat reaches Gemini with its key, and Vertex AI with the token of the environment', async () => {
  // Shows D3.route.provider.gemini, D3.route.provider.vertex, D3.route.mode.vertex, D3.route.auth.type.gcp
  const candidate = (text: string, finishReason?: string) => ({
    candidates: [{ content: { parts: [{ text }] }, finishReason }],
  })
  const used = { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 2, thoughtsTokenCount: 3 } }
  provider.reply({ ...candidate('Hello', 'STOP'), ...used })
  const { choices, usage: tokens } = await client('gemini').chat.completions.create({ ...chat, model: 'gemini-3' })
  assert.deepEqual([choices[0]?.message.content, tokens?.completion_tokens], ['Hello', 5])
  assert.deepEqual(
    [provider.last().url, provider.last().headers['x-goog-api-key']],
    ['/v1beta/models/gemini-3:generateContent', 'key-of-file'],
  )
  assert.equal(provider.last().headers.authorization, undefined)
  provider.stream(SSE_TYPE, [sseEvent(candidate('Hel')), sseEvent({ ...candidate('lo', 'STOP'), ...used })])
  assert.deepEqual(await streamed('vertex', { model: 'gemini-3' }), { text: 'Hello', finish: 'stop' })
  const models = '/v1/projects/p/locations/europe-west4/publishers/google/models'
  assert.equal(provider.last().url, `${models}/gemini-3:streamGenerateContent?alt=sse`)
  assert.equal(provider.last().headers.authorization, 'Bearer token-of-google')
  assert.deepEqual((await outcomeOf('vertex')).usage, {
    prompt: 4,
    completion: 5,
    cachedRead: 0,
    cachedWrite: 0,
    reasoning: 3,
  })
})

const anthropicUsage = { input_tokens: 5, output_tokens: 2 }
const anthropicAnswer = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  usage: anthropicUsage,
}
const anthropicEvents = [
  { type: 'message_start', message: { ...anthropicAnswer, content: [], stop_reason: null } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: anthropicUsage },
  { type: 'message_stop' },
]
const wrapped = anthropicEvents.map((one) =>
  awsEvent('chunk', { bytes: Buffer.from(JSON.stringify(one)).toString('base64') }),
)
const named = anthropicEvents.map((one) => Buffer.from(`event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`))

test("Anthropic's models are reached at Bedrock and at Vertex AI in their own words and in those of OpenAI", async () => {
  // Shows D3.route.mode.anthropic
  const place = '/v1/projects/p/locations/europe-west4/publishers/anthropic/models/claude-test'
  const ways = [
    ['claude', '/v1/messages', '/v1/messages', SSE_TYPE, named],
    [
      'claude-aws',
      '/model/claude-test/invoke',
      '/model/claude-test/invoke-with-response-stream',
      AWS_STREAM_TYPE,
      wrapped,
    ],
    ['claude-gcp', `${place}:rawPredict`, `${place}:streamRawPredict`, SSE_TYPE, named],
  ] as const
  for (const [route, path, streamPath, type, events] of ways) {
    provider.reply(anthropicAnswer)
    const own = await claude(route).messages.create(message)
    assert.deepEqual([own.content, provider.last().url], [anthropicAnswer.content, path])
    const translated = await client(route).chat.completions.create({ ...chat, model: 'claude-test' })
    assert.deepEqual([translated.choices[0]?.message.content, provider.last().url], ['Hello', path])
    assert.equal(JSON.parse(provider.last().body).max_tokens, 4096)
    provider.stream(type, events)
    assert.equal(await claude(route).messages.stream(message).finalText(), 'Hello')
    assert.equal(provider.last().url, streamPath)
    assert.deepEqual(await streamed(route, { model: 'claude-test' }), { text: 'Hello', finish: 'stop' })
    assert.equal(provider.last().url, streamPath)
    if (route === 'claude-aws') assertSigned('eu-west-1')
    if (route === 'claude-gcp') assert.equal(provider.last().headers.authorization, 'Bearer token-of-google')
  }
  provider.reply({ message: 'no such model' }, 400)
  await assert.rejects(claude('claude-aws').messages.create(message), (error) => {
    return error instanceof Anthropic.APIError && error.status === 400 && String(error).includes('no such model')
  })
  await assert.rejects(claude('claude-aws').messages.countTokens(message), Anthropic.APIError)
})

test('Oracle Cloud gets a signed request in the words of OpenAI', async () => {
  // Shows D3.route.provider.oci-genai, D3.route.auth.type.oci, D2.model.adapter.oci-genai
  provider.reply({ choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }] })
  await client('oci').chat.completions.create(chat)
  const { url, headers, body } = provider.last()
  assert.equal(url, '/openai/v1/chat/completions')
  assert.equal(headers['opc-compartment-id'], 'ocid1.compartment.oc1..a')
  const fields = new Map(
    [...String(headers.authorization).matchAll(/(\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [name, value]),
  )
  assert.equal(fields.get('keyId'), 'tenancy/user/aa:bb')
  const names = fields.get('headers')?.split(' ') ?? []
  assert.deepEqual(names.toSorted(), [
    '(request-target)',
    'content-length',
    'content-type',
    'date',
    'host',
    'x-content-sha256',
  ])
  const text = names.map((name) => `${name}: ${name === '(request-target)' ? `post ${url}` : headers[name]}`).join('\n')
  assert.ok(
    createVerify('sha256')
      .update(text)
      .verify(ociKey, fields.get('signature') ?? '', 'base64'),
    'the signature is good',
  )
  assert.equal(
    headers['x-content-sha256'],
    Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(body))).toString('base64'),
  )
})

test('a route whose cloud lends nothing refuses its calls, and says so', async () => {
  await assert.rejects(client('azure').chat.completions.create(chat), (error) => {
    return error instanceof OpenAI.APIError && error.code === 'upstream_credential'
  })
})
