import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { TEST_TRUST_DOMAIN } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { chat, json, model, routeOver, scripted } from '../../../testing/model-route.ts'
import { TOKEN } from '../../../testing/started.ts'

const cache = (scope?: string) => ({ cache: { ttlSeconds: 600, ...(scope !== undefined && { scope }) } })

/** Claims of a session of an agent, on behalf of a user or of none. */
function session(name: string, { user = 'ada', agent = 'assistant' }: { user?: string | null; agent?: string } = {}) {
  return {
    sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/${agent}/session/${name}`,
    plat_session: name,
    plat_agent: agent,
    act: user === null ? undefined : { sub: `user:${user}` },
  }
}

test('an identical request gets the stored response, which is recorded as cached and costs nothing', async (t) => {
  // Shows D3.route.cache, D3.modelRouting.cacheMaxBytes, D3.metric.plat_gateway_model_cache_total, D3.metric.plat_gateway_model_cache_bytes
  const upstream = await model(t)
  const dir = tempFolder()
  const pricingFile = join(dir, 'prices.json')
  const models = { 'openai/small-1': { input: '1', output: '100' } }
  await writeFile(pricingFile, JSON.stringify({ version: 1, currency: 'USD', id: 'p', models }))
  const more = { pricingFile, sessionBudgetUSD: 1, auditFailurePolicy: 'closed' }
  const { ask, outcomes, series } = await routeOver(t, [{ upstream: upstream.url }], more, cache())
  const first = await ask()
  const second = await ask({ messages: chat.messages, model: chat.model })
  assert.deepEqual([second.text, upstream.calls.length], [first.text, 1], 'the order of members has no meaning')
  const marks = [first, second].map(({ headers }) => headers.get('x-plat-cache'))
  assert.deepEqual([marks, second.headers.get('age')], [[null, 'hit'], '0'])
  await until(async () => (await outcomes()).length === 2, 'both outcomes')
  const [paid, free] = await outcomes()
  assert.ok(paid.costMicros > 0)
  assert.deepEqual(
    [free.result, free.usageSource, free.costMicros, Object.values(free.settled), free.attempts, free.usage.prompt],
    ['completed', 'cached', 0, [0], [], 0],
  )
  assert.deepEqual((await series('cache_total')).toSorted(), [
    'plat_gateway_model_cache_total{route="r",result="hit"} 1',
    'plat_gateway_model_cache_total{route="r",result="miss"} 1',
  ])
  assert.match((await series('cache_bytes')).join(), / [1-9]\d{3}/)
})

test('a stream is stored when it is complete, and sent again event by event', async (t) => {
  const upstream = await model(t)
  const { ask } = await routeOver(t, [{ upstream: upstream.url }], {}, cache())
  const stream = { ...chat, stream: true }
  const [first, second] = [await ask(stream), await ask(stream)]
  assert.deepEqual([second.text, second.headers.get('x-plat-cache'), upstream.calls.length], [first.text, 'hit', 1])
  assert.match(second.text, /Hello[\s\S]*\[DONE\]/)
  assert.doesNotMatch(second.text, /"usage":\{/, 'usage that the caller did not request')
  assert.match((await ask({ ...stream, stream_options: { include_usage: true } })).text, /"usage":\{/)
  assert.equal((await ask()).headers.get('x-plat-cache'), null, 'a stream is not a whole response')
})

test('responses that fail, are refused or are cut are not stored', async (t) => {
  const upstream = await model(t)
  const { ask } = await routeOver(t, [{ upstream: upstream.url }], {}, cache())
  upstream.answers({ text: [], error: { status: 400, message: 'no' } })
  assert.equal((await ask()).status, 400)
  upstream.answers({ text: ['Hello', ' world'], split: [64], diesAfter: 700 })
  const stream = { ...chat, stream: true }
  assert.match((await ask(stream)).text, /upstream_error/)
  upstream.answers({ text: ['fine'] })
  assert.match((await ask()).text, /fine/)
  assert.match((await ask(stream)).text, /fine/)
  assert.equal(upstream.calls.length, 4)
})

const sharing: Readonly<Record<string, readonly string[]>> = {
  session: ['another session', 'another user', 'another agent', 'no user'],
  user: ['another user', 'another agent', 'no user'],
  agent: ['another agent'],
  route: [],
}

for (const [scope, misses] of Object.entries(sharing)) {
  test(`with the scope ${scope} a response is not sent to ${misses.join(', ') || 'callers of another tier alone'}`, async (t) => {
    const upstream = await model(t)
    const { as } = await routeOver(t, [{ upstream: upstream.url }], {}, cache(scope === 'user' ? undefined : scope))
    const callers = {
      'another session': session('s2'),
      'another user': session('s3', { user: 'bob' }),
      'another agent': session('s4', { agent: 'other' }),
      'no user': session('s5', { user: null }),
    }
    assert.equal((await as(session('s1'))()).headers.get('x-plat-cache'), null)
    assert.equal((await as(session('s1'))()).headers.get('x-plat-cache'), 'hit')
    const missed = []
    for (const [who, claims] of Object.entries(callers)) {
      const response = await as(claims)()
      assert.equal(response.status, 200, response.text)
      if (response.headers.get('x-plat-cache') === null) missed.push(who)
    }
    assert.deepEqual(missed, misses)
    assert.equal((await as({ ...session('s1'), plat_tier: 'tier-1' })()).headers.get('x-plat-cache'), null)
  })
}

test('anything that the response depends on leads to another response', async (t) => {
  const upstream = await model(t)
  const { ask } = await routeOver(t, [{ upstream: upstream.url }], {}, cache())
  const requests = [
    chat,
    { ...chat, temperature: 0 },
    { ...chat, temperature: 0.1 },
    { ...chat, seed: JSON.rawJSON('9007199254740993') },
    { ...chat, seed: JSON.rawJSON('9007199254740992') },
    { ...chat, messages: [{ role: 'user', content: 'hi ' }] },
    { ...chat, messages: [...chat.messages, ...chat.messages] },
    { ...chat, max_tokens: 5 },
    { ...chat, model: 'large-1' },
  ]
  for (const request of requests) assert.equal((await ask(request)).headers.get('x-plat-cache'), null)
  for (const request of requests) assert.equal((await ask(request)).headers.get('x-plat-cache'), 'hit')
  assert.equal(upstream.calls.length, requests.length)
})

test('a caller can exclude or renew stored responses', async (t) => {
  const upstream = await model(t)
  const { as, series } = await routeOver(t, [{ upstream: upstream.url }], {}, cache())
  const mark = async (headers: Record<string, string>) => {
    const response = await as({}, headers)()
    return response.headers.get('x-plat-cache')
  }
  upstream.answers({ text: ['old'] })
  assert.equal(await mark({ 'cache-control': 'no-store' }), null)
  assert.equal(await mark({}), null, 'what must not be stored was not')
  assert.equal(await mark({ 'cache-control': 'max-age=60' }), 'hit')
  for (const headers of [{ 'x-plat-cache': 'off' }, { 'cache-control': 'private, No-Store' }, { 'x-plat-cache': '?' }])
    assert.equal(await mark(headers), null)
  upstream.answers({ text: ['new'] })
  for (const headers of [{ 'x-plat-cache': 'refresh' }, { 'cache-control': 'no-cache' }])
    assert.equal(await mark(headers), null)
  assert.match((await as({})()).text, /new/)
  assert.match((await series('cache_total')).join('\n'), /result="bypass"} 4/)
})

test('a stored response is redacted and judged as the route is configured when it is sent', async (t) => {
  const upstream = await model(t)
  const secret = `ghp_${randomBytes(18).toString('hex')}`
  upstream.answers({ text: [`use ${secret} now`] })
  const more = { dlpProfiles: { standard: {} }, dlp: { models: { r: 'standard' } } }
  const { ask } = await routeOver(t, [{ upstream: upstream.url }], more, cache())
  const [first, second] = [await ask(), await ask()]
  for (const { text } of [first, second]) assert.ok(!text.includes(secret), text)
  assert.deepEqual([second.headers.get('x-plat-cache'), second.text], ['hit', first.text])
})

test('responses with content of the web, or that refer to what a provider stores, are not stored', async (t) => {
  const completion = '{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}'
  const response =
    '{"id":"resp_1","object":"response","status":"completed","output":[{"type":"message","id":"msg_1","content":[]}],"usage":{"input_tokens":1,"output_tokens":1}}'
  let calls = 0
  const upstream = await scripted(t, ({ url }, answer) => {
    calls++
    answer.writeHead(200, json).end(url?.endsWith('/responses') ? response : completion)
  })
  const { as } = await routeOver(t, [{ upstream }], {}, { ...cache(), providerTools: ['web_search'] })
  const input = { model: 'small-1', input: 'hi' }
  const cases: readonly [path: string, body: object][] = [
    ['chat/completions', { ...chat, web_search_options: {} }],
    ['chat/completions', { ...chat, store: true }],
    ['responses', input],
    ['responses', { ...input, store: false, tools: [{ type: 'web_search' }] }],
    ['responses', { ...input, store: false, previous_response_id: 'resp_1' }],
    ['responses', { ...input, store: false, input: [{ type: 'item_reference', id: 'msg_1' }] }],
  ]
  for (const [path, body] of cases) {
    const before = calls
    for (let count = 0; count < 2; count++) {
      const response = await as({}, {}, path)(body)
      assert.deepEqual([response.status, response.headers.get('x-plat-cache')], [200, null], response.text)
    }
    assert.equal(calls, before + 2, JSON.stringify(body))
  }
  const stateless = as({}, {}, 'responses')
  await stateless({ ...input, store: false })
  assert.equal((await stateless({ ...input, store: false })).headers.get('x-plat-cache'), 'hit')
})

test('a response stored by a revoked session is not sent to others', async (t) => {
  const upstream = await model(t)
  const { gateway, as } = await routeOver(t, [{ upstream: upstream.url }], {}, cache('route'))
  await as(session('s1'))()
  assert.equal((await as(session('s2'))()).headers.get('x-plat-cache'), 'hit')
  const revoked = await fetch(`${gateway.url}/v1/revocations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ target: { session: 'default/assistant/s1' }, mode: 'revoke', reason: 'test' }),
  })
  assert.equal(revoked.status, 201, await revoked.text())
  assert.equal((await as(session('s1'))()).status, 401)
  assert.equal((await as(session('s2'))()).headers.get('x-plat-cache'), null)
  assert.equal((await as(session('s2'))()).headers.get('x-plat-cache'), 'hit')
})

test('while no endpoint works stored responses are sent, and a route without a cache has none', async (t) => {
  const upstream = await model(t)
  const { ask } = await routeOver(t, [{ upstream: upstream.url }], {}, cache())
  await ask()
  upstream.answers({ text: [], error: { status: 500, message: 'down' } })
  assert.equal((await ask({ ...chat, seed: 1 })).status, 502)
  assert.equal((await ask()).headers.get('x-plat-cache'), 'hit')
  const plain = await routeOver(t, [{ upstream: (await model(t)).url }])
  await plain.ask()
  assert.equal((await plain.ask()).headers.get('x-plat-cache'), null)
})
