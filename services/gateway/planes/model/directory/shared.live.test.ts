import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { startAnthropicServer } from '@plat/testkit/model/anthropic'
import { type ModelServer, startModelServer } from '@plat/testkit/model-server'
import { until } from '@plat/testkit/until'
import OpenAI from 'openai'

const KEY = 'key-of-the-provider'
const messages = [{ role: 'user' as const, content: 'Say hello.' }]

let first: ModelServer
let second: ModelServer
let claude: Awaited<ReturnType<typeof startAnthropicServer>>
let gateway: GatewayProcess
let dir: string

before(async () => {
  ;[first, second, claude] = await Promise.all([startModelServer(), startModelServer(), startAnthropicServer(KEY)])
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  await writeFile(join(dir, 'key'), KEY)
  gateway = await startGatewayProcess({
    servers: {},
    scopes: ['open', 'forced', 'claude', 'not-for-us'].map((name) => `models:${name}`),
    config: {
      models: {
        open: { upstream: first.url },
        forced: { upstream: second.url, model: 'large-1', aliases: { fast: 'small-1' } },
        claude: { provider: 'anthropic', upstream: claude.url, apiKeyFile: join(dir, 'key'), model: 'claude-test' },
        unscoped: { upstream: first.url, model: 'hidden' },
        'not-for-us': { upstream: first.url, model: 'hidden-too', agents: ['default/other'] },
      },
    },
  })
})

after(async () => {
  await Promise.all([gateway.close(), first.close(), second.close(), claude.close()])
  await rm(dir, { recursive: true })
})

const openai = () => new OpenAI({ baseURL: `${gateway.url}/llm/v1`, apiKey: gateway.token, maxRetries: 0 })
const anthropic = (path = '/llm/anthropic') =>
  new Anthropic({ baseURL: gateway.url + path, authToken: gateway.token, apiKey: null, maxRetries: 0 })
const chat = (model: string) => openai().chat.completions.create({ model, messages })
const bodyOf = ({ calls }: ModelServer) => JSON.parse(calls.at(-1)?.body ?? '{}')

test('the model chooses the route, and each call is recorded and priced as its route’s', async () => {
  await chat('fast')
  assert.equal(bodyOf(second).model, 'small-1')
  await chat('forced')
  assert.equal(bodyOf(second).model, 'large-1')
  await chat('openai/small-1')
  assert.equal(bodyOf(first).model, 'small-1')
  const stream = await openai().chat.completions.create({ model: 'forced/fast', messages, stream: true })
  for await (const chunk of stream) assert.ok(chunk)
  assert.equal(bodyOf(second).model, 'small-1')
  const outcomes = async () =>
    (await gateway.ledger()).map((line) => JSON.parse(line).rec).filter(({ kind }) => kind === 'outcome')
  await until(async () => (await outcomes()).length === 4, 'the outcomes')
  assert.deepEqual(
    (await outcomes()).map(({ server, tool }) => [server, tool]),
    [
      ['llm/forced', 'small-1'],
      ['llm/forced', 'large-1'],
      ['llm/open', 'small-1'],
      ['llm/forced', 'small-1'],
    ],
  )
})

test('Anthropic’s client reaches the models of its API, whole and streamed, at both addresses', async () => {
  claude.answers({ text: ['Hello', ' world'] })
  const request = { model: 'claude', max_tokens: 10, messages }
  for (const client of [anthropic(), anthropic('/llm')]) {
    const answer = await client.messages.create(request)
    assert.deepEqual(
      answer.content.map((block) => block.type === 'text' && block.text),
      ['Hello world'],
    )
  }
  assert.equal(await anthropic().messages.stream(request).finalText(), 'Hello world')
  assert.equal(claude.calls.at(-1)?.body.model, 'claude-test')
})

test('an unknown, hidden or ambiguous name is not found, in the format of the client, with suggestions', async () => {
  const failed = (work: Promise<unknown>) =>
    work.then(
      () => assert.fail('it was found'),
      (error: unknown) => error,
    )
  const unknown = await failed(anthropic().messages.create({ model: 'claude/none', max_tokens: 10, messages }))
  assert.ok(unknown instanceof Anthropic.NotFoundError)
  assert.match(unknown.message, /"type":"not_found_error".*has claude\/none; there is forced, claude, fast, /)
  const hidden = await failed(chat('forced/hidden'))
  assert.ok(hidden instanceof OpenAI.NotFoundError)
  assert.deepEqual([hidden.code, hidden.param], ['unknown_route', 'model'])
  assert.match(
    hidden.message,
    /404 The model call was refused: no model route that this token may use has forced\/hidden;/,
  )
  const ledger = (await gateway.ledger()).map((line) => JSON.parse(line).rec)
  assert.equal(ledger.findLast(({ code }) => code !== undefined)?.code, 'unknown_route')
})

test('the list has every model that the token may use, in both formats, with pages', async () => {
  const ids = (await openai().models.list()).data.map(({ id }) => id)
  assert.deepEqual(ids, [
    'forced',
    'claude',
    'fast',
    'openai/large-1',
    'anthropic/claude-test',
    'small-1',
    'open/large-1',
  ])
  const paged: string[] = []
  for await (const model of anthropic().models.list({ limit: 2 })) paged.push(model.id)
  assert.deepEqual(paged, ids)
  const one = await openai().models.retrieve('openai/large-1')
  assert.deepEqual([one.id, one.object, one.owned_by], ['openai/large-1', 'model', 'openai'])
  assert.equal((await anthropic().models.retrieve('claude')).type, 'model')
  await assert.rejects(openai().models.retrieve('forced/none'), OpenAI.NotFoundError)
  await assert.rejects(openai().models.list({ query: { limit: 0 } }), OpenAI.BadRequestError)
  assert.ok(!JSON.stringify(ids).includes('hidden'))
})
