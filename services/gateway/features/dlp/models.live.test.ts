import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import OpenAI from 'openai'
import { PEM, random } from './testing/samples.ts'

const CARD = '4111 1111 1111 1111'
const TOKEN = `ghp_${random(36)}`

let upstream: ModelServer
let gateway: GatewayProcess

before(async () => {
  upstream = await startModelServer()
  const route = { upstream: upstream.url }
  gateway = await startGatewayProcess({
    servers: {},
    scopes: ['plain', 'own', 'free', 'strict'].map((name) => `models:${name}`),
    config: {
      models: {
        plain: route,
        own: { ...route, dlpProfile: 'strict' },
        free: { ...route, dlpProfile: 'none' },
        strict: route,
      },
      dlpProfiles: { standard: {}, strict: { onSecret: 'deny' } },
      dlp: { namespaces: { default: 'standard' }, models: { strict: 'strict' } },
    },
  })
})

after(async () => {
  await gateway.close()
  await upstream.close()
})

const client = (route: string) =>
  new OpenAI({ baseURL: `${gateway.url}/llm/${route}/v1`, apiKey: gateway.token, maxRetries: 0 })

const asking = (content: string) => ({ model: 'small-1', messages: [{ role: 'user' as const, content }] })

async function streamed(route: string, pieces: readonly string[]): Promise<{ text: string; usage: unknown }> {
  upstream.answers({ text: pieces })
  const stream = await client(route).chat.completions.create({
    ...asking('Tell me.'),
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

test('what is sent to a model and what it answers is redacted, by the profile of the namespace', async () => {
  // Shows D3.dlp.namespaces.
  upstream.answers({ text: [`It is ${TOKEN}.`] })
  const answer = await client('plain').chat.completions.create(asking(`My card is ${CARD}.\nPay.`))
  assert.equal(answer.choices[0]?.message.content, 'It is [REDACTED:github_token].')
  const body = JSON.parse(upstream.calls.at(-1)?.body ?? '{}')
  assert.deepEqual([body.model, body.messages[0].content], ['small-1', 'My card is [REDACTED:credit_card].\nPay.'])
})

test('a stream is redacted however its text is cut, and nothing else of it changes', async () => {
  const text = `Key ${TOKEN}, card ${CARD}, and\n${PEM}\nthat is all 12`
  const expected =
    'Key [REDACTED:github_token], card [REDACTED:credit_card], and\n[REDACTED:private_key]\nthat is all 12'
  for (const size of [1, 2, 3, 7, 40, 400]) {
    const pieces = text.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []
    const told = await streamed('plain', pieces)
    assert.equal(told.text, expected)
    assert.ok(told.usage !== null)
  }
  const untouched = await streamed('plain', ['Hello', ' world', '.'])
  assert.equal(untouched.text, 'Hello world.')
})

test('a secret that must not pass ends the stream with an error, and none of it is sent', async () => {
  // Shows D3.dlp.models.
  const pieces = ['Here it is: ', ...(TOKEN.match(/.{1,5}/g) ?? []), ' - use it.']
  upstream.answers({ text: pieces })
  const response = await fetch(`${gateway.url}/llm/strict/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...asking('Tell me.'), stream: true }),
  })
  const text = await response.text()
  assert.match(text, /"code":"dlp_denied"/)
  assert.ok(!text.includes('[DONE]') && !text.includes('ghp_') && !text.includes('use it'))
})

test('a route can have its own profile, or none', async () => {
  // Shows D3.route.dlpProfile, D2.model.dlpProfile, D2.model.dlpProfile.none, D2.server.dlpProfile.none,
  // D2.server.dlpProfile.precedence.
  upstream.answers({ text: ['fine'] })
  await assert.rejects(client('own').chat.completions.create(asking(TOKEN)), { status: 403, code: 'dlp_denied' })
  upstream.answers({ text: [TOKEN] })
  const answer = await client('free').chat.completions.create(asking(TOKEN))
  assert.equal(answer.choices[0]?.message.content, TOKEN)
  assert.match(upstream.calls.at(-1)?.body ?? '', new RegExp(TOKEN))
})
