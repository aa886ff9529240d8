import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { type AnthropicServer, startAnthropicServer } from '@plat/testkit/model/anthropic'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import OpenAI from 'openai'
import { PEM, random } from './testing/samples.ts'

const KEY = `sk-ant-${random(40)}`
const CARD = '4111 1111 1111 1111'
const TOKEN = `ghp_${random(36)}`

let upstream: ModelServer
let gateway: GatewayProcess
let anthropic: AnthropicServer
let dir: string

before(async () => {
  upstream = await startModelServer()
  anthropic = await startAnthropicServer(KEY)
  dir = await mkdtemp(path.join(os.tmpdir(), 'plat-'))
  await writeFile(path.join(dir, 'key'), KEY)
  const route = { upstream: upstream.url }
  const claude = { provider: 'anthropic', upstream: anthropic.url, apiKeyFile: path.join(dir, 'key') }
  gateway = await startGatewayProcess({
    servers: {},
    scopes: ['plain', 'own', 'free', 'strict', 'claude', 'sealed'].map((name) => `models:${name}`),
    config: {
      models: {
        plain: route,
        own: { ...route, dlpProfile: 'strict' },
        free: { ...route, dlpProfile: 'none' },
        strict: route,
        claude,
        sealed: { ...claude, dlpProfile: 'strict' },
      },
      dlpProfiles: { standard: {}, strict: { onSecret: 'deny' } },
      dlp: { namespaces: { default: 'standard' }, models: { strict: 'strict' } },
    },
  })
})

after(async () => {
  await gateway.close()
  await upstream.close()
  await anthropic.close()
  await rm(dir, { recursive: true })
})

const client = (route: string) =>
  new OpenAI({ baseURL: `${gateway.url}/llm/${route}/v1`, apiKey: gateway.token, maxRetries: 0 })

const chatRequest = (content: string) => ({ model: 'small-1', messages: [{ role: 'user' as const, content }] })

async function streamed(route: string, pieces: readonly string[]): Promise<{ text: string; usage: unknown }> {
  upstream.answers({ text: pieces })
  const stream = await client(route).chat.completions.create({
    ...chatRequest('Continue.'),
    stream: true,
    stream_options: { include_usage: true },
  })
  let text = ''
  let usage: unknown = null
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? ''
    usage = chunk.usage ?? usage
  }
  return { text, usage }
}

test('requests and responses of a model are redacted by the profile of the namespace', async () => {
  // Shows D3.dlp.namespaces.
  upstream.answers({ text: [`It is ${TOKEN}.`] })
  const answer = await client('plain').chat.completions.create(chatRequest(`My card is ${CARD}.\nPay.`))
  assert.equal(answer.choices[0]?.message.content, 'It is [REDACTED:github_token].')
  const body = JSON.parse(upstream.calls.at(-1)?.body ?? '{}')
  assert.deepEqual([body.model, body.messages[0].content], ['small-1', 'My card is [REDACTED:credit_card].\nPay.'])
})

test('a stream is redacted for any split of its text, and otherwise unchanged', async () => {
  const text = `Key ${TOKEN}, card ${CARD}, and\n${PEM}\nthat is all 12`
  const expected =
    'Key [REDACTED:github_token], card [REDACTED:credit_card], and\n[REDACTED:private_key]\nthat is all 12'
  for (const size of [1, 2, 3, 7, 40, 400]) {
    const pieces = text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []
    const received = await streamed('plain', pieces)
    assert.equal(received.text, expected)
    assert.ok(received.usage !== null)
  }
  const untouched = await streamed('plain', ['Hello', ' world', '.'])
  assert.equal(untouched.text, 'Hello world.')
})

test('streams of the messages API are redacted for its official client, and end with its error', async () => {
  const text = `Key ${TOKEN}, card ${CARD}.`
  const models = new Anthropic({
    baseURL: `${gateway.url}/llm/claude`,
    authToken: gateway.token,
    apiKey: null,
    maxRetries: 0,
  })
  const request = {
    model: 'claude-test',
    max_tokens: 100,
    messages: [{ role: 'user' as const, content: `Mine is ${CARD}` }],
  }
  for (const size of [1, 7, 40]) {
    anthropic.answers({ text: text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? [] })
    const message = await models.messages.stream(request).finalMessage()
    const [block] = message.content
    assert.equal(block?.type === 'text' && block.text, 'Key [REDACTED:github_token], card [REDACTED:credit_card].')
    assert.equal(message.stop_reason, 'end_turn')
  }
  assert.match(JSON.stringify(anthropic.calls.at(-1)?.body), /Mine is \[REDACTED:credit_card\]/)
  const strict = new Anthropic({
    baseURL: `${gateway.url}/llm/sealed`,
    authToken: gateway.token,
    apiKey: null,
    maxRetries: 0,
  })
  const refused = strict.messages
    .stream({ ...request, messages: [{ role: 'user', content: 'Continue.' }] })
    .finalMessage()
  await assert.rejects(refused, /github_token/)
})

test('a forbidden secret ends the stream with an error, and no part of it is sent', async () => {
  // Shows D3.dlp.models.
  const pieces = ['Here it is: ', ...(TOKEN.match(/.{1,5}/g) ?? []), ' - use it.']
  upstream.answers({ text: pieces })
  const response = await fetch(`${gateway.url}/llm/strict/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...chatRequest('Continue.'), stream: true }),
  })
  const text = await response.text()
  assert.match(text, /"code":"dlp_denied"/)
  assert.ok(!text.includes('[DONE]') && !text.includes('ghp_') && !text.includes('use it'))
})

test('a route can have its own profile, or none', async () => {
  // Shows D3.route.dlpProfile, D2.model.dlpProfile, D2.model.dlpProfile.none.
  upstream.answers({ text: ['fine'] })
  await assert.rejects(client('own').chat.completions.create(chatRequest(TOKEN)), { status: 403, code: 'dlp_denied' })
  upstream.answers({ text: [TOKEN] })
  const answer = await client('free').chat.completions.create(chatRequest(TOKEN))
  assert.equal(answer.choices[0]?.message.content, TOKEN)
  assert.match(upstream.calls.at(-1)?.body ?? '', new RegExp(TOKEN))
})
