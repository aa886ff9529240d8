import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { TEST_TRUST_DOMAIN } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { type ResponsesServer, startResponsesServer } from '@plat/testkit/responses-server'
import OpenAI from 'openai'
import { started } from '../../../testing/started.ts'

async function responsesServer(t: TestContext): Promise<ResponsesServer> {
  const server = await startResponsesServer()
  t.after(() => server.close())
  return server
}

type Claims = Readonly<Record<string, unknown>>

async function setUp(t: TestContext, isRestarted = false) {
  const provider = await responsesServer(t)
  const dir = tempFolder()
  const config = {
    models: { r: { upstream: provider.url }, other: { upstream: provider.url } },
    auditPath: join(dir, 'audit.jsonl'),
  }
  const running = await started(t, config, isRestarted)
  const clientOf =
    ({ gateway, issuer }: Awaited<ReturnType<typeof started>>) =>
    (claims: Claims = {}, route = 'r') => {
      const apiKey = issuer.token({ scope: 'models:r models:other', ...claims })
      return new OpenAI({ baseURL: `${gateway.url}/llm/${route}/v1`, apiKey, maxRetries: 0 })
    }
  return { provider, config, running, as: clientOf(running), clientOf }
}

const sub = (agent: string, session: string) => ({
  sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/${agent}/session/${session}`,
  plat_agent: agent,
  plat_session: session,
})

const first = { model: 'm', input: 'remember 7' } as const

test('a stored response is continued by its agent and user, in any session, and by no other', async (t) => {
  const { provider, as } = await setUp(t)
  const { id, output } = await as().responses.create(first)
  const next = { model: 'm', input: 'and now?', previous_response_id: id } as const
  await as().responses.create(next)
  await as(sub('assistant', 'later')).responses.create(next)
  const before = provider.requests.length
  const others: readonly OpenAI[] = [
    as(sub('intruder', 's1')),
    as({ act: { sub: 'user:bob' } }),
    // Another route to the same account.
    as({}, 'other'),
  ]
  for (const other of others)
    await assert.rejects(other.responses.create(next), /403 .*previous_response_id names content at the provider/)
  const item = { type: 'item_reference', id: output[0]?.id ?? assert.fail() } as const
  await assert.rejects(others[0]?.responses.create({ model: 'm', input: [item] }) ?? assert.fail(), /403 .*input names/)
  await assert.rejects(as().responses.create({ ...next, previous_response_id: 'resp_unknown' }), /403 .*names content/)
  assert.equal(provider.requests.length, before)
  await as().responses.create({ model: 'm', input: [item] })
})

test('a streamed response is owned once its stream is complete, and one that is not stored never is', async (t) => {
  const { as } = await setUp(t)
  let id = ''
  for await (const event of await as().responses.create({ ...first, stream: true }))
    if (event.type === 'response.completed') id = event.response.id
  await as().responses.create({ model: 'm', input: 'next', previous_response_id: id })
  const unstored = await as().responses.create({ ...first, store: false })
  const continued = as().responses.create({ model: 'm', input: 'next', previous_response_id: unstored.id })
  await assert.rejects(continued, /403 .*names content/)
})

test('conversations, prompts and items that name content without an owner are denied by name', async (t) => {
  const { provider, as } = await setUp(t)
  const requests: readonly (readonly [string, object])[] = [
    ['conversation', { conversation: 'conv_1' }],
    ['conversation', { conversation: { id: 'conv_1' } }],
    ['prompt', { prompt: { id: 'pmpt_1' } }],
    ['input', { input: [{ type: 'image_generation_call', id: 'ig_1' }] }],
    ['input', { input: [{ type: 'reasoning', id: 'rs_1', summary: [] }] }],
    ['input', { input: [{ id: 'msg_1' }] }],
  ]
  for (const [param, request] of requests) {
    const sent = as().responses.create({ ...first, ...request })
    await assert.rejects(sent, new RegExp(`403 .*${param} names content`), JSON.stringify(request))
  }
  const items = Array.from({ length: 1001 }, (_, at) => ({ type: 'item_reference', id: `msg_${at}` }) as const)
  await assert.rejects(
    as().responses.create({ ...first, input: items }),
    /400 .*input names more content .* than the 1000/,
  )
  assert.equal(provider.requests.length, 0)
  const whole: OpenAI.Responses.ResponseInput = [
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'sealed' },
    { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [] },
    { role: 'user', content: 'hi' },
  ]
  await as().responses.create({ model: 'm', input: whole })
})

test('the owner of a response is known after a restart, and the call goes to the endpoint that stores it', async (t) => {
  const { provider, config, running, as, clientOf } = await setUp(t, true)
  const spare = await responsesServer(t)
  const { id } = await as().responses.create(first)
  await running.gateway.drain()
  const models = { r: { upstream: spare.url, fallbacks: [{ upstream: provider.url }] } }
  const restarted = await started(t, { ...config, models })
  const later = clientOf(restarted)
  await later().responses.create({ model: 'm', input: 'next', previous_response_id: id })
  await assert.rejects(
    later(sub('intruder', 's1')).responses.create({ model: 'm', input: 'next', previous_response_id: id }),
    /403 /,
  )
  assert.deepEqual([spare.requests.length, provider.requests.at(-1)?.previous_response_id], [0, id])
})
