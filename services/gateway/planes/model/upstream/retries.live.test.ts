import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { test } from 'node:test'
import { until } from '@plat/testkit/until'
import { chat, json, model, routeOver, scripted } from '../../../testing/model-route.ts'

const COMPLETION = '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}'
const retries = { retries: { attempts: 2 } }

/** An upstream that answers its calls in turn, and the last answer again and again. */
function inTurn(...answers: readonly RequestListener[]) {
  const seen: number[] = []
  const listener: RequestListener = (request, response) => {
    answers[Math.min(seen.length, answers.length - 1)]?.(request, response)
    seen.push(seen.length)
  }
  return { seen, listener }
}

const answers =
  (status: number, headers: Record<string, string> = {}, body = '{"error":{"message":"later"}}'): RequestListener =>
  (_, response) =>
    void response.writeHead(status, { ...json, ...headers }).end(body)
const works = answers(200, {}, COMPLETION)

const refusals: Readonly<Record<string, RequestListener>> = {
  'a 429': answers(429),
  'a 529': answers(529),
  'a 503 with Retry-After': answers(503, { 'retry-after': '0' }),
  'a 429 with Retry-After as a date': answers(429, { 'retry-after': new Date(0).toUTCString() }),
}

for (const [what, refusal] of Object.entries(refusals)) {
  test(`a request that its only endpoint refused with ${what} is sent again`, async (t) => {
    // Shows D3.route.retries, D3.metric.plat_gateway_model_retries_total
    const { seen, listener } = inTurn(refusal, works)
    const { ask, outcomes, series } = await routeOver(t, [{ upstream: await scripted(t, listener) }], {}, retries)
    const response = await ask()
    assert.deepEqual([response.status, seen.length], [200, 2], response.text)
    await until(async () => (await outcomes()).length === 1, 'the outcome')
    assert.equal((await outcomes())[0].attempts.length, 2)
    assert.deepEqual(await series('retries'), ['plat_gateway_model_retries_total{route="r",result="sent"} 1'])
    assert.deepEqual(await series('failovers'), [])
  })
}

/** Failures after which the provider may have executed and charged the request. */
const executed: Readonly<Record<string, RequestListener>> = {
  'a 500': answers(500),
  'a 503 without Retry-After': answers(503),
  'a broken connection': (request) => request.socket.destroy(),
  'an invalid response': answers(200, {}, '{"choices":{}}'),
  'a refused key': answers(401),
  'an invalid request': answers(400),
}

for (const [what, failure] of Object.entries(executed)) {
  test(`after ${what} a generation is not sent again`, async (t) => {
    const { seen, listener } = inTurn(failure, works)
    const { ask } = await routeOver(t, [{ upstream: await scripted(t, listener) }], {}, retries)
    assert.notEqual((await ask()).status, 200)
    assert.equal(seen.length, 1)
  })
}

test('a request without effect at the provider is sent again after any failure', async (t) => {
  const { seen, listener } = inTurn(answers(500), works)
  const lists: RequestListener = (request, response) => {
    if (seen.length === 0) listener(request, response)
    else response.writeHead(200, json).end('{"object":"list","data":[]}')
  }
  const { fetchAt } = await routeOver(t, [{ upstream: await scripted(t, lists) }], {}, retries)
  assert.equal((await fetchAt('models')).status, 200)
})

test('nothing is sent again once the stream has begun', async (t) => {
  const breaking = await model(t)
  breaking.answers({ text: ['Hello', ' world'], split: [64], diesAfter: 700 })
  const { ask } = await routeOver(t, [{ upstream: breaking.url }], {}, retries)
  assert.match((await ask({ ...chat, stream: true })).text, /upstream_error/)
  assert.equal(breaking.calls.length, 1)
})

test('a provider that states too long a wait is not called again, and its answer is relayed', async (t) => {
  const { seen, listener } = inTurn(answers(429, { 'retry-after': '60' }), works)
  const { ask, series } = await routeOver(t, [{ upstream: await scripted(t, listener) }], {}, retries)
  const response = await ask()
  assert.deepEqual([response.status, response.headers.get('retry-after'), seen.length], [429, '60', 1])
  assert.match(response.text, /later/)
  assert.deepEqual(await series('retries'), ['plat_gateway_model_retries_total{route="r",result="wait"} 1'])
})

test('the retries of a route have a budget, after which the provider answers its callers itself', async (t) => {
  const { seen, listener } = inTurn(answers(429))
  const upstream = await scripted(t, listener)
  const { ask, series } = await routeOver(t, [{ upstream }], {}, { retries: { attempts: 1 } })
  const responses = await Promise.all(Array.from({ length: 8 }, () => ask()))
  assert.deepEqual(new Set(responses.map(({ status }) => status)), new Set([429]))
  const [budget, sent] = (await series('retries')).toSorted()
  assert.match(sent ?? '', /result="sent"} [1-3]$/)
  assert.match(budget ?? '', /result="budget"} [5-8]$/)
  assert.ok(seen.length <= 11)
})

test('where all endpoints failed, only those that did not process the request get it again', async (t) => {
  const executing = inTurn(answers(500), works)
  const busy = inTurn(answers(429), works)
  const endpoints = [
    { upstream: await scripted(t, executing.listener) },
    { upstream: await scripted(t, busy.listener) },
  ]
  const { ask } = await routeOver(t, endpoints, {}, retries)
  assert.equal((await ask()).status, 200)
  assert.deepEqual([executing.seen.length, busy.seen.length], [1, 2])
})

test('a caller that leaves during the wait ends the call', async (t) => {
  const { seen, listener } = inTurn(answers(429, { 'retry-after': '5' }), works)
  const { ask, outcomes } = await routeOver(t, [{ upstream: await scripted(t, listener) }], {}, retries)
  const leaving = new AbortController()
  const asking = ask(chat, leaving.signal)
  await until(() => seen.length === 1, 'the first attempt')
  leaving.abort()
  await assert.rejects(asking)
  await until(async () => (await outcomes()).length === 1, 'the outcome')
  assert.deepEqual([(await outcomes())[0].result, seen.length], ['cancelled', 1])
})

test('calls are distributed by weight, and an endpoint that fails loses its share to the others', async (t) => {
  // Shows D3.route.balancing, D3.route.weight
  const [heavy, light, spare] = [await model(t), await model(t), await model(t)]
  const endpoints = [{ upstream: heavy.url, weight: 3 }, { upstream: light.url }, { upstream: spare.url, weight: 0 }]
  const { ask } = await routeOver(t, endpoints, {}, { balancing: 'weight' })
  for (let count = 0; count < 8; count++) assert.equal((await ask()).status, 200)
  assert.deepEqual([heavy.calls.length, light.calls.length, spare.calls.length], [6, 2, 0])
  const error = { status: 500, message: 'down' }
  for (const one of [heavy, light]) one.answers({ text: [], error })
  assert.equal((await ask()).status, 200)
  assert.equal(spare.calls.length, 1)
})

test('calls go to the endpoint whose responses begin sooner', async (t) => {
  const [slow, fast] = [await model(t), await model(t)]
  slow.answers(() => ({ text: ['late'], after: new Promise((resolve) => setTimeout(resolve, 150)) }))
  const endpoints = [{ upstream: slow.url }, { upstream: fast.url }]
  const { ask } = await routeOver(t, endpoints, {}, { balancing: 'latency' })
  for (let count = 0; count < 12; count++) assert.equal((await ask()).status, 200)
  assert.ok(slow.calls.length <= 3 && fast.calls.length >= 9, `${slow.calls.length} to the slow one`)
})
