import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { chat, json, model, routeOver, scripted } from '../../../testing/model-route.ts'

const events = { 'content-type': 'text/event-stream' }

/** The ways in which an endpoint can fail before the caller has received anything, with the status of the attempt. */
const failures: Readonly<Record<string, readonly [status: number, answer: RequestListener]>> = {
  'it hangs up': [0, (request) => request.socket.destroy()],
  'it answers 500': [500, (_, response) => response.writeHead(500, json).end('{}')],
  'it answers 529': [529, (_, response) => response.writeHead(529, json).end('{}')],
  'it answers 429': [429, (_, response) => response.writeHead(429, json).end('{}')],
  'it answers 408': [408, (_, response) => response.writeHead(408, json).end('{}')],
  'it does not accept the key of the gateway': [401, (_, response) => response.writeHead(401, json).end('{}')],
  'it forbids the model to the key of the gateway': [403, (_, response) => response.writeHead(403, json).end('{}')],
  'it redirects': [302, (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end()],
  'it answers without JSON': [200, (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('x')],
  'it dies in its answer': [
    200,
    (request, response) => {
      response.writeHead(200, { ...json, 'content-length': '100' }).write('{"a"')
      setImmediate(() => request.socket.destroy())
    },
  ],
  'its answer is not JSON': [200, (_, response) => response.writeHead(200, json).end('{"choices":[')],
  'its answer is not a completion': [200, (_, response) => response.writeHead(200, json).end('{"choices":{}}')],
  'its stream ends before it has begun': [200, (_, response) => response.writeHead(200, events).end()],
  'its stream breaks before it has begun': [
    200,
    (request, response) => {
      response.writeHead(200, events).flushHeaders()
      setImmediate(() => request.socket.destroy())
    },
  ],
  'its stream begins with an error': [
    200,
    (_, response) => response.writeHead(200, events).end('data: {"error":{"message":"overloaded"}}\n\n'),
  ],
}

for (const [how, [status, answer]] of Object.entries(failures)) {
  test(`where an endpoint fails because ${how}, the next one answers`, async (t) => {
    // Shows D2.model.fallbacks.on.5xx, D2.model.fallbacks.on.429.
    // Shows D3.route.fallbacks, D2.model.fallbacks.order
    const dead = await scripted(t, answer)
    const alive = await model(t)
    const { ask, outcomes } = await routeOver(t, [{ upstream: dead }, { upstream: alive.url, model: 'large-1' }])
    const stream = how.includes('stream')
    const response = await ask({ ...chat, stream })
    assert.equal(response.status, 200, response.text)
    assert.match(response.text, stream ? /Hello[\s\S]*world[\s\S]*\[DONE\]/ : /Hello world\./)
    await until(async () => (await outcomes()).length === 1, 'the outcome')
    const [outcome] = await outcomes()
    assert.deepEqual(
      [outcome.result, outcome.endpoint, outcome.attempts.map((one: { status: number }) => one.status)],
      ['completed', new URL(alive.url).origin, [status, 200]],
    )
    assert.equal(JSON.parse(alive.calls[0]?.body ?? '').model, 'large-1', 'a fallback gets its own model')
    assert.equal(outcome.usage.completion, 3)
  })
}

test('an endpoint that cannot be reached, and one that says nothing in its time, are passed over', async (t) => {
  // Shows D2.model.fallbacks.on.error, D2.model.fallbacks.on.timeout.
  // Shows D3.modelRouting.attemptTimeoutSeconds
  const silent = await scripted(t, () => {})
  const slow = await scripted(t, (_, response) => void response.writeHead(200, events).flushHeaders())
  const alive = await model(t)
  const endpoints = ['http://127.0.0.1:9/v1', silent, slow, alive.url].map((upstream) => ({ upstream }))
  // Long enough for the one that does answer, however busy the machine is.
  const { ask, outcomes, series } = await routeOver(t, endpoints, { modelRouting: { attemptTimeoutSeconds: 4 } })
  assert.equal((await ask({ ...chat, stream: true })).status, 200)
  await until(async () => (await outcomes()).length === 1, 'the outcome')
  const [{ attempts }] = await outcomes()
  assert.deepEqual(
    attempts.map((one: { endpoint: string; status: number }) => [`${one.endpoint}/v1`, one.status]),
    [
      [endpoints[0]?.upstream, 0],
      [silent, 0],
      [slow, 200],
      [alive.url, 200],
    ],
  )
  // Shows D3.metric.plat_gateway_model_failovers_total, D3.metric.plat_gateway_model_endpoint_failures_total
  const [from, to] = [new URL(slow).origin, new URL(alive.url).origin]
  assert.ok(
    (await series('failovers_total')).includes(
      `plat_gateway_model_failovers_total{route="r",from="${from}",to="${to}"} 1`,
    ),
  )
  assert.equal((await series('endpoint_failures_total')).length, 3)
})

test('a request that an endpoint refuses as invalid is not sent to another endpoint', async (t) => {
  for (const status of [400, 404, 422]) {
    const refusing = await scripted(t, (_, response) => response.writeHead(status, json).end('{"error":{}}'))
    const alive = await model(t)
    const { ask, series } = await routeOver(t, [{ upstream: refusing }, { upstream: alive.url }])
    assert.equal((await ask()).status, status)
    assert.equal(alive.calls.length, 0)
    assert.deepEqual(await series('endpoint_failures_total'), [])
  }
})

test('after the first part of a stream no other endpoint is tried, and a failure counts against the endpoint', async (t) => {
  const breaking = await model(t)
  breaking.answers({ text: ['Hello', ' world'], split: [64], diesAfter: 700 })
  const alive = await model(t)
  const { ask, series } = await routeOver(t, [{ upstream: breaking.url }, { upstream: alive.url }])
  const response = await ask({ ...chat, stream: true })
  assert.equal(response.status, 200)
  assert.match(response.text, /upstream_error/)
  assert.equal(alive.calls.length, 0)
  assert.equal((await series('endpoint_failures_total')).length, 1)
})

test('a 429 of the last available endpoint is relayed with its Retry-After', async (t) => {
  const busy: RequestListener = (_, response) =>
    response.writeHead(429, { ...json, 'retry-after': '7' }).end('{"error":{"message":"slow down"}}')
  const { ask, outcomes } = await routeOver(t, [
    { upstream: await scripted(t, busy) },
    { upstream: await scripted(t, busy) },
  ])
  const response = await ask()
  assert.deepEqual([response.status, response.headers.get('retry-after')], [429, '7'])
  assert.match(response.text, /slow down/)
  await until(async () => (await outcomes()).length === 1, 'the outcome')
  assert.equal((await outcomes())[0].attempts.length, 2)
})

test('if every endpoint fails the caller gets one error, and the record has all attempts', async (t) => {
  const dead = await scripted(t, (_, response) => response.writeHead(503, json).end('{}'))
  const { ask, outcomes } = await routeOver(t, [{ upstream: dead }, { upstream: 'http://127.0.0.1:9/v1' }])
  const response = await ask()
  assert.deepEqual([response.status, JSON.parse(response.text).error.code], [502, 'upstream_error'])
  await until(async () => (await outcomes()).length === 1, 'the outcome')
  const [outcome] = await outcomes()
  assert.deepEqual(
    [outcome.result, outcome.attempts.map((one: { status: number }) => one.status)],
    ['failed', [503, 0]],
  )
})

test('a caller that leaves ends the attempt, and trips no circuit', async (t) => {
  let came = () => {}
  const arrived = new Promise<void>((resolve) => {
    came = resolve
  })
  const gone = Promise.withResolvers<void>()
  const silent = await scripted(t, (request) => {
    request.socket.once('close', gone.resolve)
    came()
  })
  const alive = await model(t)
  const { ask, outcomes, series } = await routeOver(t, [{ upstream: silent }, { upstream: alive.url }], {
    modelRouting: { failureThreshold: 1 },
  })
  const leaving = new AbortController()
  const asking = ask(chat, leaving.signal)
  await arrived
  leaving.abort()
  await assert.rejects(asking)
  await gone.promise
  await until(async () => (await outcomes()).length === 1, 'the outcome')
  assert.equal((await outcomes())[0].result, 'cancelled')
  assert.deepEqual([alive.calls.length, await series('endpoint_failures_total')], [0, []])
})

test('three failures keep calls away from an endpoint, for as long as there is another', async (t) => {
  // Shows D2.model.fallbacks.on.openCircuit.
  // Shows D3.models.modelRouting, D3.limit.failover, D3.metric.plat_gateway_model_endpoint_skipped_total, D3.metric.plat_gateway_model_circuits_open
  let requests = 0
  let healthy = false
  const shaky = await scripted(t, (_, response) => {
    requests++
    if (healthy) response.writeHead(200, json).end('{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}')
    else response.writeHead(500, json).end('{}')
  })
  const alive = await model(t)
  const { ask, series } = await routeOver(t, [{ upstream: shaky }, { upstream: alive.url }])
  for (let count = 0; count < 4; count++) assert.equal((await ask()).status, 200)
  assert.deepEqual([requests, alive.calls.length], [3, 4])
  const label = new URL(shaky).origin
  const skipped = `plat_gateway_model_endpoint_skipped_total{route="r",endpoint="${label}",reason="circuit"} 1`
  assert.ok((await series('endpoint_skipped_total')).includes(skipped))
  assert.deepEqual(await series('circuits_open'), ['plat_gateway_model_circuits_open 1'])
  const hasty = await routeOver(t, [{ upstream: shaky }, { upstream: alive.url }], {
    modelRouting: { cooldownSeconds: 1, failureThreshold: 1 },
  })
  await hasty.ask()
  healthy = true
  const before = requests
  await until(async () => {
    await hasty.ask()
    return requests > before
  }, 'the end of the cooldown')
  assert.deepEqual(await hasty.series('circuits_open'), ['plat_gateway_model_circuits_open 0'])
})

test('an endpoint with an open circuit is tried if there is no other', async (t) => {
  let requests = 0
  const dead = await scripted(t, (_, response) => {
    requests++
    response.writeHead(500, json).end('{}')
  })
  const modelRouting = { failureThreshold: 1 }
  const alone = await routeOver(t, [{ upstream: dead }], { modelRouting })
  await alone.ask()
  await alone.ask()
  assert.deepEqual([requests, await alone.series('circuits_open')], [2, ['plat_gateway_model_circuits_open 1']])
  const both = await routeOver(t, [{ upstream: dead }, { upstream: 'http://127.0.0.1:9/v1' }], { modelRouting })
  await both.ask()
  assert.equal((await both.ask()).status, 502)
  assert.equal(requests, 4)
})

test('an endpoint whose key cannot be read is passed over', async (t) => {
  const [locked, alive] = [await model(t), await model(t)]
  const dir = tempFolder()
  const { ask, series } = await routeOver(t, [
    { upstream: locked.url, apiKeyFile: join(dir, 'missing') },
    { upstream: alive.url },
  ])
  assert.equal((await ask()).status, 200)
  assert.deepEqual([locked.calls.length, alive.calls[0]?.headers.authorization], [0, undefined])
  assert.match((await series('endpoint_skipped_total')).join('\n'), /reason="credential"} 1/)
})

/** A gateway whose sessions may spend so much, with an endpoint at 100 and one at 1 per million tokens of output. */
async function priced(t: TestContext, budget: number, first: string, second: string) {
  const dir = tempFolder()
  const pricingFile = join(dir, 'prices.json')
  const price = (output: string) => ({ input: '0', output })
  const models = { 'openai/dear': price('100'), 'openai/cheap': price('1') }
  await writeFile(pricingFile, JSON.stringify({ version: 1, currency: 'USD', id: 'p', models }))
  const endpoints = [
    { upstream: first, model: 'cheap' },
    { upstream: second, model: 'dear' },
  ]
  return routeOver(t, endpoints, { pricingFile, sessionBudgetUSD: budget, auditFailurePolicy: 'closed' })
}

test('the dearest endpoint that may answer is held for, and the one that answers is paid', async (t) => {
  const dead = await scripted(t, (_, response) => response.writeHead(503, json).end('{}'))
  const alive = await model(t)
  const { ask, outcomes } = await priced(t, 1, dead, alive.url)
  assert.equal((await ask({ ...chat, max_tokens: 1000 })).status, 200)
  await until(async () => (await outcomes()).length === 1, 'the outcome')
  const [outcome] = await outcomes()
  assert.deepEqual([outcome.costMicros, Object.values(outcome.settled)], [300, [300]])
})

test('an endpoint that is dearer than what is left is passed over', async (t) => {
  const dead = await scripted(t, (_, response) => response.writeHead(503, json).end('{}'))
  const alive = await model(t)
  const { ask, series } = await priced(t, 0.01, dead, alive.url)
  assert.equal((await ask({ ...chat, max_tokens: 1000 })).status, 502)
  assert.equal(alive.calls.length, 0)
  assert.match((await series('endpoint_skipped_total')).join('\n'), /reason="price"} 1/)
})

/** Returns the results of calls within one minute of the wall clock. Repeats the calls if the minute ended in between. */
async function inOneMinute<T>(calls: () => Promise<T>): Promise<T> {
  const minute = () => Math.floor(Date.now() / 60_000)
  for (;;) {
    const began = minute()
    const answers = await calls()
    if (minute() === began) return answers
  }
}

test('an endpoint whose requests per minute are used up is skipped; if none is left, the refusal has a retry delay', async (t) => {
  // Shows D3.route.requestsPerMinute, D2.model.fallbacks.on.exhaustedRate, D2.model.requestsPerMinute, D2.model.requestsPerMinute.failsOver, D2.fallback.requestsPerMinute.
  const [first, second] = [await model(t), await model(t)]
  const endpoints = [first, second].map(({ url }) => ({ upstream: url, requestsPerMinute: 1 }))
  const { ask, series } = await routeOver(t, endpoints)
  const [one, two, three] = await inOneMinute(async () => [await ask(), await ask(), await ask()])
  assert.deepEqual([one?.status, two?.status, three?.status], [200, 200, 429])
  assert.equal(JSON.parse(three?.text ?? '').error.code, 'rate_limited')
  const seconds = Number(three?.headers.get('retry-after'))
  assert.ok(seconds >= 1 && seconds <= 60)
  assert.ok(first.calls.length >= 1 && second.calls.length >= 1)
  const skipped = (await series('endpoint_skipped_total')).join('\n')
  assert.match(skipped, /reason="rate"\} [1-9]/)
})

test('a route with one endpoint refuses calls above its requests per minute without forwarding them', async (t) => {
  const only = await model(t)
  const { ask, outcomes } = await routeOver(t, [{ upstream: only.url, requestsPerMinute: 2 }])
  let before = 0
  const answers = await inOneMinute(async () => {
    before = only.calls.length
    return [await ask(), await ask(), await ask()]
  })
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 429],
  )
  assert.equal(only.calls.length - before, 2)
  await until(async () => (await outcomes()).some(({ code }) => code === 'rate_limited'), 'the record of the refusal')
})

test('a session is answered in the jurisdiction of its tier, by a model that its data may go to', async (t) => {
  const [near, far, own] = [await model(t), await model(t), await model(t)]
  const endpoints = [
    { upstream: far.url, jurisdiction: 'US', model: 'gpt' },
    { upstream: near.url, jurisdiction: 'DE', model: 'gpt' },
    { upstream: own.url, jurisdiction: 'US', model: 'own' },
  ]
  const tierJurisdictions = { 'tier-0': 'DE' }
  const preferred = await routeOver(t, endpoints, { modelRouting: { tierJurisdictions } })
  assert.equal((await preferred.ask()).status, 200)
  assert.deepEqual([near.calls.length, far.calls.length], [1, 0])
  const dataClassModels = { internal: ['own'] }
  const classed = await routeOver(t, endpoints, { modelRouting: { tierJurisdictions, dataClassModels } })
  assert.equal((await classed.ask()).status, 200)
  assert.deepEqual([near.calls.length, far.calls.length, own.calls.length], [1, 0, 1])
  assert.match((await classed.series('endpoint_skipped_total')).join('\n'), /reason="model"} 1/)
})

test('after the cooldown one call alone tries the endpoint, and the others go elsewhere meanwhile', async (t) => {
  let requests = 0
  const held = Promise.withResolvers<void>()
  const shaky = await scripted(t, async (_, response) => {
    requests++
    if (requests > 1) await held.promise
    response.writeHead(500, json).end('{}')
  })
  const alive = await model(t)
  const modelRouting = { failureThreshold: 1, cooldownSeconds: 1 }
  const { ask } = await routeOver(t, [{ upstream: shaky }, { upstream: alive.url }], { modelRouting })
  const begun = performance.now()
  assert.equal((await ask()).status, 200)
  const answers: ReturnType<typeof ask>[] = []
  await until(async () => {
    answers.push(ask())
    return requests >= 2
  }, 'the call that tries it again')
  assert.equal((await ask()).status, 200)
  // One a cooldown, however many calls there are and however slow the machine is.
  assert.ok(requests <= 1 + (performance.now() - begun) / 1000, String(requests))
  held.resolve()
  for (const { status } of await Promise.all(answers)) assert.equal(status, 200)
})
