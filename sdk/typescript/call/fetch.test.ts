import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { testIssuer } from '@plat/testkit/identity'
import {
  ApprovalPendingError,
  BudgetExceededError,
  connect,
  DeniedError,
  type TokenSource,
  withTraceparent,
} from '../index.ts'
import { claimsOf } from '../testing/claims.ts'

const GATEWAY = 'https://gateway.example'

/** Requests that a gateway received. */
interface Sent {
  readonly url: string
  readonly headers: Headers
  readonly body: string
}

type FakeResponse = (sent: Sent) => Response

const ok: FakeResponse = () => new Response('{}', { status: 200, headers: { 'content-type': 'application/json' } })

/** A refusal as the gateway's plain ones are. */
function refusing(status: number, code: string, headers: Readonly<Record<string, string>> = {}): FakeResponse {
  const body = JSON.stringify({ error: code, message: `${code}, says the gateway`, requestId: 'd1' })
  return () => new Response(body, { status, headers: { 'content-type': 'application/json', ...headers } })
}

async function bodyOf({ body = null }: RequestInit = {}): Promise<string> {
  return body instanceof ReadableStream ? 'a stream' : new Response(body).text()
}

/** A session whose gateway gives these answers in turn, the last one again and again. */
async function setUp(answers: readonly FakeResponse[], more: Parameters<typeof connect>[0] = {}) {
  const clock = new TestClock()
  const issuer = testIssuer({ clock })
  const sent: Sent[] = []
  let issued = 0
  const source: TokenSource = {
    name: 'the test',
    async issue({ jkt }) {
      issued++
      return { token: issuer.token(jkt === null ? {} : { cnf: { jkt } }) }
    },
  }
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const one = { url: String(url), headers: new Headers(init?.headers), body: await bodyOf(init) }
    sent.push(one)
    const answer = answers[Math.min(sent.length, answers.length) - 1] ?? ok
    return answer(one)
  }
  const session = await connect({ gatewayURL: `${GATEWAY}/`, source, fetch, clock, env: {}, ...more })
  const post = (init: RequestInit = {}) =>
    session.fetch(`${GATEWAY}/mcp/notes`, { method: 'POST', body: '{}', ...init })
  return { session, clock, issuer, sent, post, issued: () => issued }
}

/** Moves time on once the call waits. */
async function later<T>(clock: TestClock, ms: number, call: Promise<T>): Promise<T> {
  await clock.advance(0)
  await clock.advance(ms)
  return call
}

test('a call goes out with the token, and keys of clients stay behind', async () => {
  const { session, sent, post } = await setUp([ok])
  await post({ headers: { authorization: 'Bearer of-the-client', 'x-api-key': 'of-the-client', accept: 'a/b' } })
  const [one] = sent
  assert.equal(one?.headers.get('authorization'), `Bearer ${await session.token()}`)
  assert.deepEqual(
    ['x-api-key', 'dpop', 'accept'].map((name) => one?.headers.get(name)),
    [null, null, 'a/b'],
  )
  await session.fetch(new Request(`${GATEWAY}/mcp/notes`, { method: 'POST', body: 'from a request' }))
  assert.deepEqual([sent[1]?.url, sent[1]?.body], [`${GATEWAY}/mcp/notes`, 'from a request'])
})

test('the token is sent only to the gateway, for every spelling of a URL', async () => {
  const { session, sent } = await setUp([ok], { gatewayURL: `${GATEWAY}/plat` })
  const others = [
    'https://elsewhere.example/plat/mcp/notes',
    `${GATEWAY}.elsewhere.example/plat/mcp`,
    `${GATEWAY}/other/mcp`,
    `${GATEWAY}/platypus`,
    `${GATEWAY}/plat/../other`,
    'http://gateway.example/plat/mcp',
    'https://gateway.example@elsewhere.example/plat/',
    'no url',
  ]
  for (const url of others) await assert.rejects(session.fetch(url), /calls only the gateway/, url)
  assert.deepEqual(sent, [])
  await session.fetch(`${GATEWAY}/plat/mcp/notes?x=1#y`)
  assert.equal(sent.length, 1)
})

test('a request refused with Retry-After is repeated then, with the same body', async () => {
  const { clock, sent, post } = await setUp([refusing(429, 'rate_limited', { 'retry-after': '3' }), ok])
  const call = post({ body: '{"id":1}' })
  await clock.advance(0)
  await clock.advance(2_999)
  assert.equal(sent.length, 1)
  assert.equal((await later(clock, 1, call)).status, 200)
  assert.deepEqual(
    sent.map(({ body }) => body),
    ['{"id":1}', '{"id":1}'],
  )
})

test('a denial on HTTP 200 is repeated as well, as error and as tool result, an answer never', async () => {
  const error = { code: 429, message: 'later', data: { error: 'rate_limited', decisionId: 'd' } }
  const says = (body: object) => () =>
    new Response(JSON.stringify(body), { headers: { 'content-type': 'application/json', 'retry-after': '1' } })
  const meta = { 'plat.dev/denial': { code: 429, error: 'rate_limited', decisionId: 'd', reason: 'later' } }
  const result = { content: [], isError: true, _meta: meta }
  for (const body of [{ error }, { result }]) {
    const denied = await setUp([says({ jsonrpc: '2.0', id: 1, ...body }), ok])
    assert.equal(await (await later(denied.clock, 1_000, denied.post())).text(), '{}')
    assert.equal(denied.sent.length, 2)
  }
  const answers = [
    says({ jsonrpc: '2.0', id: 1, result: {} }),
    () => new Response('data: 1', { headers: { 'retry-after': '1' } }),
  ]
  for (const answer of answers) {
    const { post, sent } = await setUp([answer])
    assert.equal((await post()).status, 200)
    assert.equal(sent.length, 1)
  }
})

test('a call is not repeated if it is useless, has no time, may have run, is too late, is a stream, or responded early', async () => {
  const cases: readonly [FakeResponse, RequestInit][] = [
    [refusing(429, 'rate_limited', { 'retry-after': '1', 'x-should-retry': 'false' }), {}],
    [refusing(429, 'budget_exceeded', { 'retry-after': '1' }), {}],
    [refusing(502, 'upstream_error'), {}],
    [refusing(503, 'revocations_unavailable', { 'retry-after': '1' }), {}],
    [refusing(429, 'rate_limited', { 'retry-after': '31' }), {}],
    [refusing(503, 'approval_pending', { 'retry-after': '5' }), { headers: { prefer: 'wait=5' } }],
    [refusing(429, 'rate_limited', { 'retry-after': '1' }), { body: new Response('x').body, duplex: 'half' }],
  ]
  for (const [answer, init] of cases) {
    const { sent, post } = await setUp([answer])
    await assert.rejects(post(init), DeniedError)
    assert.equal(sent.length, 1)
  }
})

test('four sends are the most', async () => {
  const { clock, sent, post } = await setUp([refusing(429, 'backlog_full', { 'retry-after': '1' })])
  const call = assert.rejects(post(), { code: 'backlog_full', retryAfterMs: 1000 })
  await later(clock, 60_000, call)
  assert.equal(sent.length, 4)
})

test('a call that is given up while it waits is not sent again', async () => {
  const { clock, sent, post } = await setUp([refusing(429, 'rate_limited', { 'retry-after': '3' })])
  const leaving = new AbortController()
  const call = assert.rejects(post({ signal: leaving.signal }), /left/)
  await clock.advance(0)
  leaving.abort(new Error('left'))
  await call
  await clock.advance(10_000)
  assert.equal(sent.length, 1)
})

test('refusals are errors, but for the statuses that clients act upon', async () => {
  const { post } = await setUp([refusing(429, 'budget_exceeded', { 'x-should-retry': 'false' })])
  await assert.rejects(post(), (error) => error instanceof BudgetExceededError && error.status === 429)
  for (const [status, code] of [
    [400, 'unsupported_version'],
    [404, 'unknown_session'],
    [405, 'method_not_allowed'],
  ] as const) {
    const { post: asking } = await setUp([refusing(status, code)])
    assert.equal((await asking()).status, status)
  }
  const theirs = await setUp([
    () =>
      new Response('{"error":{"code":"of_the_upstream"}}', {
        status: 500,
        headers: { 'content-type': 'application/json' },
      }),
  ])
  assert.equal((await theirs.post()).status, 500)
})

test('model clients get the answer itself and repeat by themselves', async () => {
  const { session, sent } = await setUp([refusing(429, 'rate_limited', { 'retry-after': '1' })])
  const { baseURL, fetch } = session.openai()
  assert.equal(baseURL, `${GATEWAY}/llm/default.assistant/v1`)
  assert.equal((await fetch(`${baseURL}/models`)).status, 429)
  assert.equal(session.anthropic('claude').baseURL, `${GATEWAY}/llm/claude`)
  assert.equal(sent.length, 1)
})

test('a token that is no longer accepted is replaced once', async () => {
  const stale = refusing(401, 'unauthenticated', { 'www-authenticate': 'Bearer error="invalid_token"' })
  const { clock, sent, post, issued } = await setUp([stale, ok])
  await clock.advance(6_000)
  assert.equal((await post()).status, 200)
  assert.equal(issued(), 2)
  const [first, second] = sent.map(({ headers }) => headers.get('authorization'))
  assert.notEqual(first, second)
  const never = await setUp([stale])
  await never.clock.advance(6_000)
  await assert.rejects(never.post(), { code: 'unauthenticated', status: 401 })
  assert.equal(never.sent.length, 2)
})

test('a revoked session requests no other token', async () => {
  const { clock, sent, post, issued } = await setUp([refusing(401, 'revoked', { 'www-authenticate': 'Bearer' })])
  await clock.advance(6_000)
  await assert.rejects(post(), { name: 'RevokedError', code: 'revoked' })
  assert.deepEqual([sent.length, issued()], [1, 1])
})

test('a bound session proves its key for each call, to the address that the gateway knows itself by', async () => {
  const more = { dpop: true, publicURL: 'https://public.example/plat' }
  const { sent, post, clock, session } = await setUp([ok], more)
  await post()
  await session.fetch('https://public.example/plat/a2a/default/helper?x=1', { method: 'get' })
  const proofs = sent.map(({ headers }) => claimsOf(headers.get('dpop')))
  assert.equal(sent[0]?.headers.get('authorization'), `DPoP ${await session.token()}`)
  assert.deepEqual(
    proofs.map(({ htm, htu, iat }) => [htm, htu, iat]),
    [
      ['POST', 'https://public.example/plat/mcp/notes', Math.floor(clock.now() / 1000)],
      ['GET', 'https://public.example/plat/a2a/default/helper', Math.floor(clock.now() / 1000)],
    ],
  )
  assert.notEqual(proofs[0]?.jti, proofs[1]?.jti)
})

test('a required nonce is part of this proof and the next ones', async () => {
  const nonceRequired = refusing(401, 'invalid_dpop_proof', {
    'www-authenticate': 'DPoP error="use_dpop_nonce"',
    'dpop-nonce': 'n1',
  })
  const { sent, post } = await setUp([nonceRequired, ok], { dpop: true })
  await post()
  await post()
  assert.deepEqual(
    sent.map(({ headers }) => claimsOf(headers.get('dpop')).nonce),
    [undefined, 'n1', 'n1'],
  )
})

test('redirects are not followed', async () => {
  const seen: unknown[] = []
  const fetch: typeof globalThis.fetch = async (_, init) => {
    seen.push(init?.redirect)
    return new Response('{}')
  }
  const { session } = await setUp([], { fetch })
  await session.fetch(`${GATEWAY}/x`)
  await session.fetch(`${GATEWAY}/x`, { redirect: 'follow' })
  await session.fetch(`${GATEWAY}/x`, { redirect: 'manual' })
  assert.deepEqual(seen, ['error', 'error', 'manual'])
})

test('code runs in the session of the token; what the gateway refuses is an error, what the sandbox says an answer', async () => {
  const { session, sent } = await setUp([
    () => new Response('{"stdout":"42"}', { status: 200, headers: { 'content-type': 'application/json' } }),
    () => new Response('{"error":"syntax"}', { status: 422, headers: { 'content-type': 'application/json' } }),
    refusing(404, 'unknown_session'),
  ])
  assert.deepEqual(await session.exec({ code: 'print(6 * 7)' }), { status: 200, result: { stdout: '42' } })
  assert.deepEqual([sent[0]?.url, sent[0]?.body], [`${GATEWAY}/v1/sessions/s1/exec`, '{"code":"print(6 * 7)"}'])
  assert.deepEqual(await session.exec({ code: '(' }), { status: 422, result: { error: 'syntax' } })
  await assert.rejects(session.exec({ code: '' }), { code: 'unknown_session' })
})

test('the trace context of a request continues in its calls', async () => {
  const { post, sent } = await setUp([ok])
  const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  await withTraceparent(trace, () => post())
  await withTraceparent(trace, () => post({ headers: { traceparent: 'of the client' } }))
  await withTraceparent('made up', () => post())
  assert.deepEqual(
    sent.map(({ headers }) => headers.get('traceparent')),
    [trace, 'of the client', null],
  )
})

test('a session closes at the end of its block', async () => {
  let token: () => Promise<string> = assert.fail
  {
    await using session = (await setUp([ok])).session
    token = () => session.token()
    assert.ok(await token())
  }
  await assert.rejects(token(), /the session is closed/)
})

test('early responses are requested by a header', async () => {
  const { session } = await setUp([])
  assert.deepEqual(session.mcp('notes', { approvalWaitSeconds: 5 }).requestInit, { headers: { prefer: 'wait=5' } })
  assert.deepEqual(session.mcp('team/notes').url.href, `${GATEWAY}/mcp/team/notes`)
  assert.ok(new ApprovalPendingError({ ...blank, code: 'approval_pending' }) instanceof DeniedError)
})

const blank = {
  ...{ message: '', status: 0, policy: null, rule: null, decisionId: null, retryAfterMs: null, approvalId: null },
  ...{ scopes: [], connectURL: null, provider: null },
}
