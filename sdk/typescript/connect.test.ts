import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { testIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { bootstrap, connect, fixedToken, readClaims, untilApproved } from './index.ts'
import { bootstrapBy } from './token/bootstrap.ts'

const gatewayURL = 'https://gateway.example'
const json = { 'content-type': 'application/json' }

test('a missing setting is named, with the way to set it', async () => {
  await assert.rejects(connect({ env: {} }), /set PLAT_GATEWAY_URL, or give gatewayURL/)
  await assert.rejects(connect({ env: { PLAT_GATEWAY_URL: gatewayURL } }), /set PLAT_TOKEN_FILE or PLAT_BOOTSTRAP_URL/)
  await assert.rejects(connect({ env: { PLAT_GATEWAY_URL: 'gateway.example' } }), /gatewayURL must be an http or https/)
  const { session, token } = await withToken()
  await assert.rejects(session.exchange({ audience: 'x' }), /set PLAT_IDENTITY_URL or identityURL/)
  await assert.rejects(connect({ gatewayURL, source: fixedToken(token), dpop: true, env: {} }), /set PLAT_IDENTITY_URL/)
  await assert.rejects(connect({ gatewayURL, source: fixedToken('x'), env: {} }), /no session token/)
  const bad = { gatewayURL, source: fixedToken(token), env: {}, dpop: { privateKey: 'secret' } }
  await assert.rejects(connect(bad), { message: 'dpop.privateKey is not a private key in PEM (PKCS8)' })
})

async function withToken() {
  const token = testIssuer().token()
  return { token, session: await connect({ gatewayURL, source: fixedToken(token), env: {} }) }
}

test('under plat run the forwarder has the token, and its address is the way', async () => {
  const forwarder = 'http://127.0.0.1:4000/abcdef'
  const seen: [string, Headers][] = []
  const fetch: typeof globalThis.fetch = async (url, init) => {
    seen.push([String(url), new Headers(init?.headers)])
    return new Response('{}', { headers: json })
  }
  const env = { PLAT_GATEWAY_URL: forwarder, PLAT_SESSION: 'run-1', OPENAI_BASE_URL: `${forwarder}/llm/default.me/v1` }
  const session = await connect({ env, fetch })
  assert.equal(session.openai().baseURL, env.OPENAI_BASE_URL)
  assert.equal(session.mcp('notes').url.href, `${forwarder}/mcp/notes`)
  await session.exec({ code: '1' })
  assert.equal(seen[0]?.[0], `${forwarder}/v1/sessions/run-1/exec`)
  assert.deepEqual([seen[0]?.[1].get('authorization'), seen[0]?.[1].get('content-type')], [null, json['content-type']])
  await session.fetch(new Request(`${forwarder}/mcp/notes`, { headers: { accept: 'a/b' } }))
  assert.equal(seen[1]?.[1].get('accept'), 'a/b')
  assert.equal(session.claims, null)
  await assert.rejects(session.token(), /not available with plat run/)
  await assert.rejects(session.fetch('http://127.0.0.1:4000/other'), /calls only the gateway/)
  await assert.rejects(connect({ env, dpop: true }), /not possible with plat run/)
})

test('a token file is read again before its token ends', async () => {
  const clock = new TestClock()
  const issuer = testIssuer({ clock })
  const file = path.join(tempFolder(), 'token')
  const first = issuer.token()
  await writeFile(file, `${first}\n`)
  const session = await connect({ gatewayURL, clock, env: { PLAT_TOKEN_FILE: file } })
  assert.equal(await session.token(), first)
  await clock.advance(15 * 60_000)
  const second = issuer.token()
  await writeFile(file, second)
  assert.equal(await session.token(), second)
  await assert.rejects(connect({ gatewayURL, env: { PLAT_TOKEN_FILE: `${file}.not` }, clock: eager }), /\(ENOENT\)/)
})

/** Pauses take no time. */
const eager = {
  now: () => Date.now(),
  monotonic: () => 0,
  every: () => () => {},
  after(_: number, job: () => void) {
    queueMicrotask(job)
    return () => {}
  },
}

test('a pod of a warm pool waits until it is adopted, and learns where its gateway is', async () => {
  const token = testIssuer().token()
  const file = path.join(tempFolder(), 'sa-token')
  await writeFile(file, 'projected')
  const bootstrapped = { token, attested: false, env: { PLAT_GATEWAY_URL: gatewayURL, PLAT_SESSION: 's1', PORT: 1 } }
  const early = () => new Response('{"error":"not_adopted"}', { status: 425, headers: json })
  const answers = [
    ...Array.from({ length: 10 }, early),
    new Response('{"error":"temporarily_unavailable"}', { status: 503, headers: { ...json, 'retry-after': '1' } }),
    early(),
    new Response(JSON.stringify(bootstrapped), { headers: json }),
  ]
  const requests: string[] = []
  const fetch: typeof globalThis.fetch = async (url, init) => {
    requests.push(`${url} ${new Headers(init?.headers).get('authorization')}`)
    return answers[requests.length - 1] ?? assert.fail()
  }
  const pauses: number[] = []
  const clock = { ...eager, after: (ms: number, job: () => void) => eager.after(pauses.push(ms), job) }
  const source = bootstrapBy({ url: 'https://identity.example:8083', serviceAccountTokenFile: file, fetch }, clock)
  const session = await connect({ source, fetch, clock: eager, env: {} })
  assert.equal(session.gatewayURL, gatewayURL)
  assert.deepEqual(session.env, { PLAT_GATEWAY_URL: gatewayURL, PLAT_SESSION: 's1' })
  assert.deepEqual(new Set(requests), new Set(['https://identity.example:8083/v1/bootstrap?wait=20 Bearer projected']))
  assert.deepEqual(
    pauses,
    Array.from({ length: 11 }, () => 1_000),
    'a broker that does not wait before 425 is not called again at once',
  )
  const revoked: typeof fetch = async () => new Response('{"error":"session_revoked"}', { status: 403, headers: json })
  const refused = connect({
    source: bootstrap({ url: 'https://identity.example:8083', serviceAccountTokenFile: file, fetch: revoked }),
    env: {},
  })
  await assert.rejects(refused, /refused: session_revoked/)
})

test('claims are read with the user innermost and the delegating agents nearest first', () => {
  const caller = 'spiffe://plat.local/ns/default/agent/planner/session/p1'
  const token = testIssuer().token({
    act: { sub: caller, act: { sub: 'user:ada' } },
    plat_groups: 'staff on-call',
    plat_inherited_taints: 'secret',
  })
  const { user, actors, agent, groups, inheritedTaints } = readClaims(token)
  assert.deepEqual([agent, user, actors], ['assistant', 'ada', [caller]])
  assert.deepEqual([groups, inheritedTaints], [['staff', 'on-call'], ['secret']])
})

test('a call that waits for a person is made again until it is decided', async () => {
  const pending = {
    code: 503,
    message: 'waits',
    data: { error: 'approval_pending', approvalId: 'a1', retryAfterMs: 5 },
  }
  let calls = 0
  const seen: (string | null)[] = []
  const decided = await untilApproved(
    async () => {
      calls++
      if (calls < 3) throw Object.assign(new Error('waits'), pending)
      return 'done'
    },
    { clock: eager, onPending: ({ approvalId }) => seen.push(approvalId) },
  )
  assert.deepEqual([decided, calls, seen], ['done', 3, ['a1', 'a1']])
  const denied = Object.assign(new Error('no'), { code: 403, data: { error: 'approval_denied' } })
  await assert.rejects(
    untilApproved(() => Promise.reject(denied)),
    { name: 'ApprovalRefusedError', cause: denied },
  )
  const other = new Error('other')
  await assert.rejects(
    untilApproved(() => Promise.reject(other)),
    (error) => error === other,
  )
})
