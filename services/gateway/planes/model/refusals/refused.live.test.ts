import assert from 'node:assert/strict'
import { test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { type RefusingGateway, refusingGateway } from '../../../testing/refusing.ts'

const messages = [{ role: 'user' as const, content: 'Say hello.' }]

/** The official clients at their defaults, which repeat a call twice, with the number of requests that they sent. */
function clients({ url, token }: RefusingGateway) {
  const sent = { count: 0 }
  const fetching: typeof fetch = (input, init) => {
    // Before an upload the clients fetch an empty `data:` URL, to learn what this `fetch` supports.
    if (!String(input).startsWith('data:')) sent.count++
    return fetch(input, init)
  }
  const openai = (route: string) => new OpenAI({ baseURL: `${url}/llm/${route}/v1`, apiKey: token, fetch: fetching })
  const claude = new Anthropic({ baseURL: `${url}/llm/claude`, authToken: token, apiKey: null, fetch: fetching })
  const chat = (route: string, more: object = {}) =>
    openai(route).chat.completions.create({ model: 'small-1', messages, ...more })
  const message = (more: object = {}) =>
    claude.messages.create({ model: 'claude-test', max_tokens: 100, messages, ...more })
  /** Returns the error of a call that is sent once. */
  const refused = async (work: () => Promise<unknown>) => {
    const before = sent.count
    const error = await work().then(
      () => assert.fail('it was not refused'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof OpenAI.APIError || error instanceof Anthropic.APIError)
    assert.equal(sent.count - before, 1, 'the client does not repeat the call')
    return error
  }
  return { openai, claude, chat, message, refused }
}

const DECISION = '[0-9a-f-]{36}'

test('a policy’s refusal reaches the callers of both clients with reason, advice and decision, once', async (t) => {
  const gateway = await refusingGateway(t)
  const { chat, message, refused } = clients(gateway)
  const text = (model: string) =>
    new RegExp(
      `The call of ${model} was refused: large models are for research\\. Do not repeat this call as it is: .* Decision ${DECISION}\\.`,
    )
  const first = await refused(() => chat('plain', { model: 'large-1' }))
  assert.ok(first instanceof OpenAI.PermissionDeniedError)
  assert.match(first.message, text('large-1'))
  const { code, type, requestID, headers } = first
  assert.deepEqual([code, type], ['policy_denied', 'permission_error'])
  assert.equal(requestID, headers?.get('x-plat-decision-id'))
  const body = Object(first.error)
  assert.deepEqual([body.policy, body.rule, body.decision_id], ['default/all', 'no-large', requestID])
  const second = await refused(() => message({ model: 'large-1' }))
  assert.ok(second instanceof Anthropic.PermissionDeniedError)
  assert.match(second.message, text('large-1'))
  assert.equal(second.requestID, second.headers?.get('x-plat-decision-id'))
  assert.match(second.message, /"type":"permission_error"/)
})

test('refusals by limits name the limit and when it is over, and clients repeat only what a short wait helps', async (t) => {
  const gateway = await refusingGateway(t)
  const { openai, chat, message, refused } = clients(gateway)
  await chat('slow')
  const rate = await refused(() => chat('slow'))
  assert.ok(rate instanceof OpenAI.RateLimitError)
  const limit = 'the limit of 1 calls in 86400 s of each session \\(rule slow of policy default/all\\)'
  assert.match(rate.message, new RegExp(`refused: ${limit} is used up until 2\\d{3}-.*Z\\. Call less often\\. Repeat`))
  assert.ok(Number(rate.headers?.get('retry-after')) > 0)

  await chat('minute')
  const once = openai('minute').withOptions({ maxRetries: 0 })
  const minute = await refused(() => once.chat.completions.create({ model: 'small-1', messages }))
  assert.match(minute.message, /minute at the model route minute \(requestsPerMinute\) are used up until 2\d{3}-.*Z\./)
  const wait = Number(minute.headers?.get('retry-after'))
  assert.ok(wait > 0 && wait <= 60 && minute.headers?.get('x-should-retry') === null)

  const budget = await refused(() => chat('plain', { model: 'dear' }))
  assert.ok(budget instanceof OpenAI.RateLimitError)
  assert.deepEqual([budget.code, budget.type], ['budget_exceeded', 'insufficient_quota'])
  assert.match(
    budget.message,
    /left of the session's budget\. A larger budget would help\. Do not repeat this call now\./,
  )
  const other = await refused(() => message({ model: 'dear' }))
  assert.ok(other instanceof Anthropic.RateLimitError)
  assert.match(other.message, /"type":"billing_error".*left of the session's budget/)
})

test('a call without an argument that a rule reads is refused by the name of the argument', async (t) => {
  const gateway = await refusingGateway(t)
  const { chat, refused } = clients(gateway)
  await chat('argued', { max_tokens: 100 })
  const missing = await refused(() => chat('argued'))
  assert.match(
    missing.message,
    /refused: argument "max_tokens" is missing \(no rule of policy default\/all allows this\)/,
  )
  const beyond = await refused(() => chat('argued', { max_tokens: 101 }))
  assert.match(beyond.message, /refused: no rule of policy default\/all allows this\./)
})

test('an error within a stream has the same text', async (t) => {
  const gateway = await refusingGateway(t)
  const { chat, message, refused } = clients(gateway)
  gateway.openai.answers({ text: ['Hello', ' world'], diesAfter: 400 })
  gateway.anthropic.answers({ text: ['Hello', ' world'], diesAfter: 3 })
  const read = async (stream: Promise<unknown>) => {
    const events = await stream
    assert.ok(typeof events === 'object' && events !== null && Symbol.asyncIterator in events)
    for await (const event of Object(events)) assert.ok(event)
  }
  const text = new RegExp(`The call of \\S+ failed: .*\\. You may repeat the call once\\. Decision ${DECISION}\\.`)
  const first = await refused(() => read(chat('plain', { stream: true })))
  assert.match(first.message, text)
  assert.equal(Object(first.error).code, 'upstream_error')
  const second = await refused(() => read(message({ stream: true })))
  assert.match(second.message, text)
})

test('batches without their scope are refused in both clients, which do not repeat the call', async (t) => {
  const { openai, claude, refused } = clients(await refusingGateway(t))
  const batch = { endpoint: '/v1/chat/completions', input_file_id: 'file-1', completion_window: '24h' } as const
  for (const work of [
    () => openai('plain').batches.create(batch),
    () => claude.messages.batches.create({ requests: [] }),
  ]) {
    const { status, message } = await refused(work)
    assert.equal(status, 403)
    assert.match(message, /scope models\.batches:\S+ is required.*Do not repeat this call/)
  }
})
