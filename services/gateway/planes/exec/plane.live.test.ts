import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { wholeLines } from '@plat/testkit/ledger'
import { closed, listening, tempFolder } from '@plat/testkit/local'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { started, TOKEN } from '../../testing/started.ts'

const CARD = '4111 1111 1111 1111'

/** A request that a sandbox received. */
interface Run {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** How a sandbox responds; by default it prints its code. */
type SandboxResponse = (run: Run, response: ServerResponse) => void

const print: SandboxResponse = ({ body }, response) => {
  const { code } = JSON.parse(body)
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ stdout: code, exitCode: 0 }))
}

interface Setup {
  readonly exec?: object
  readonly config?: object
  readonly rules?: readonly object[]
  readonly answer?: SandboxResponse
}

/** Starts a gateway with a listening sandbox, at a path with the names of its session. */
async function setUp(t: TestContext, { exec, config, rules, answer = print }: Setup = {}) {
  const runs: Run[] = []
  const sandbox = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const run = { path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString('utf8') }
    runs.push(run)
    answer(run, response)
  })
  t.after(() => closed(sandbox))
  const port = await listening(sandbox)
  const dir = tempFolder()
  const policyFile = join(dir, 'policies.json')
  await writeFile(policyFile, policiesFile([testPolicy(rules === undefined ? {} : { rules })]))
  const auditPath = join(dir, 'audit.jsonl')
  const { gateway, issuer } = await started(t, {
    policyFile,
    auditPath,
    exec: { enabled: true, endpointTemplate: `http://127.0.0.1:${port}/{namespace}/{session}/`, ...exec },
    ...config,
  })
  const token = (claims: object = {}) => issuer.token({ scope: 'tools:plat-exec', ...claims })
  const records = (): readonly Record<string, unknown>[] =>
    wholeLines(auditPath)
      .map((line) => JSON.parse(line).rec)
      .filter(({ op }) => op === 'exec')
  const run = async (
    body: unknown,
    { id = 's1', at = gateway.url, ...claims }: Readonly<Record<string, unknown>> & { id?: string; at?: string } = {},
  ) => {
    const headers = { authorization: `Bearer ${token(claims)}`, 'content-type': 'application/json' }
    const sent = typeof body === 'string' ? body : JSON.stringify(body)
    const response = await fetch(`${at}/v1/sessions/${id}/exec`, { method: 'POST', headers, body: sent })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
  }
  const outcome = async () => {
    await until(() => records().some(({ kind }) => kind === 'outcome'), 'the outcome')
    return records().findLast(({ kind }) => kind === 'outcome') ?? assert.fail()
  }
  const counted = async (result: string) => {
    const headers = { authorization: `Bearer ${TOKEN}` }
    const text = await (await fetch(`${gateway.adminUrl}/metrics`, { headers })).text()
    return text.includes(`plat_gateway_exec_total{result="${result}"} 1\n`)
  }
  return { gateway, issuer, runs, records, run, outcome, counted, dir, token }
}

test('code is forwarded unchanged to the sandbox of its session, and its response is relayed', async (t) => {
  // Shows D3.sessions.exec.enabled, D3.sessions.exec.endpointTemplate, D3.endpoint.exec and D3.metric.plat_gateway_exec_total.
  const { runs, run, records, outcome, counted } = await setUp(t)
  const body = '{ "code": "print(1)", "n": 12345678901234567890 }'
  const answer = await run(body)
  assert.deepEqual([answer.status, answer.text], [200, '{"stdout":"print(1)","exitCode":0}'])
  assert.match(answer.headers.get('x-plat-decision-id') ?? '', /^[-0-9a-f]{36}$/)
  const [received = assert.fail('no request')] = runs
  assert.deepEqual([received.path, received.body], ['/default/s1/exec', body])
  assert.deepEqual([received.headers.authorization, received.headers['x-plat-exec-key']], [undefined, undefined])
  // Without a timeout in the request, the maximum applies.
  assert.equal(received.headers['x-plat-exec-timeout'], '300')
  const { server, tool, method, result, status } = await outcome()
  assert.deepEqual([server, tool, method, result, status], ['plat-exec', 'exec', 'exec', 'completed', 200])
  assert.deepEqual(
    records().map(({ kind }) => kind),
    ['intent', 'outcome'],
  )
  assert.doesNotMatch(JSON.stringify(records()), /print/)
  assert.ok(await counted('ok'))
})

test('a session has a short and a full name, and sessions of others are not found', async (t) => {
  const { run, runs } = await setUp(t)
  assert.equal((await run({ code: 'x' }, { id: 'default%2Fassistant%2Fs1' })).status, 200)
  for (const id of ['s2', 'default%2Fassistant%2Fs2', 'default%2Fother%2Fs1', '%zz']) {
    const { status, body } = await run({ code: 'x' }, { id })
    assert.deepEqual([status, body.error], [404, 'unknown_session'], id)
  }
  assert.equal(runs.length, 1)
})

test('a session whose name would change the host has no sandbox', async (t) => {
  const { run, runs } = await setUp(t)
  const session = 'x.evil'
  const sub = `spiffe://plat.local/ns/default/agent/assistant/session/${session}`
  const { status, body } = await run({ code: 'x' }, { id: session, sub, plat_session: session })
  assert.deepEqual([status, body.error], [404, 'unknown_session'])
  assert.equal(runs.length, 0)
})

test('the scope and the policy determine who may run code, and a policy may match the code', async (t) => {
  const rules = [
    { name: 'all', action: 'allow', match: { servers: ['plat-exec'] } },
    {
      name: 'no-rm',
      action: 'deny',
      match: { servers: ['plat-exec'], tools: ['exec'] },
      when: "args.code.contains('rm ')",
    },
  ]
  const { run, runs, counted } = await setUp(t, { rules })
  const unscoped = await run({ code: 'x' }, { scope: 'tools:notes' })
  assert.deepEqual([unscoped.status, unscoped.body.error], [403, 'insufficient_scope'])
  assert.ok(await counted('denied'))
  const denied = await run({ code: 'rm -rf /' })
  assert.deepEqual([denied.status, denied.body.error], [403, 'policy_denied'])
  assert.equal((await run({ code: 'ls' })).status, 200)
  assert.equal(runs.length, 1)
})

test('an invalid request is refused with the reason', async (t) => {
  const { run, runs } = await setUp(t, { exec: { maxTimeoutSeconds: 20 } })
  const reasons: readonly (readonly [unknown, RegExp])[] = [
    ['{"code":"a","code":"b"}', /not strict JSON/],
    ['[]', /must be a JSON object/],
    [{ timeoutSeconds: 21 }, /timeoutSeconds must be a whole number from 1 to 20 \(exec\.maxTimeoutSeconds\)/],
    [{ timeoutSeconds: 0 }, /timeoutSeconds/],
    [{ timeoutSeconds: '5' }, /timeoutSeconds/],
    [{ timeoutSeconds: 1.5 }, /timeoutSeconds/],
  ]
  for (const [body, reason] of reasons) {
    const answer = await run(body)
    assert.deepEqual([answer.status, answer.body.error], [400, 'invalid_request'])
    assert.match(answer.body.message, reason)
  }
  assert.equal(runs.length, 0)
})

test('code that exceeds its timeout is aborted with the connection to its sandbox', async (t) => {
  // Shows D3.sessions.exec.maxTimeoutSeconds and D3.limit.exec.
  const lost: Promise<unknown>[] = []
  const { run, outcome, counted } = await setUp(t, {
    exec: { maxTimeoutSeconds: 1 },
    answer: (_, response) => void lost.push(once(response, 'close')),
  })
  const { status, body } = await run({ code: 'while True: pass' })
  assert.deepEqual([status, body.error, body.message], [504, 'upstream_timeout', 'the code did not end within 1 s'])
  await Promise.all(lost)
  const { result, code } = await outcome()
  assert.deepEqual([result, code], ['failed', 'upstream_timeout'])
  assert.ok(await counted('timeout'))
})

test('output up to the limit is relayed, and one byte more is refused', async (t) => {
  // Shows D3.sessions.exec.maxOutputBytes and D3.limit.exec.
  const maxOutputBytes = 10_000
  const empty = JSON.stringify({ stdout: '' }).length
  const { run } = await setUp(t, {
    exec: { maxOutputBytes },
    answer({ body }, response) {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ stdout: 'x'.repeat(JSON.parse(body).length - empty) }))
    },
  })
  assert.equal((await run({ length: maxOutputBytes })).text.length, maxOutputBytes)
  const { status, body } = await run({ length: maxOutputBytes + 1 })
  assert.deepEqual([status, body.error], [502, 'upstream_error'])
  assert.match(body.message, /larger than 10000 bytes \(exec\.maxOutputBytes\)/)
})

test('the key of the file is sent only to the sandbox, and without it no code runs', async (t) => {
  // Shows D3.sessions.exec.keyFile.
  const keyFile = join(tempFolder(), 'exec.key')
  await writeFile(keyFile, 'first\n')
  const { run, runs } = await setUp(t, { exec: { keyFile }, config: { policyReloadSeconds: 1 } })
  const answer = await run({ code: 'x' })
  assert.equal(runs[0]?.headers['x-plat-exec-key'], 'first')
  assert.doesNotMatch(answer.text, /first/)
  await writeFile(keyFile, '\n')
  let last = answer
  await until(async () => {
    last = await run({ code: 'x' })
    return last.status !== 200
  }, 'the empty key to be noticed')
  assert.deepEqual([last.status, last.body.error], [502, 'upstream_credential'])
  await writeFile(keyFile, 'second')
  await until(async () => (await run({ code: 'x' })).status === 200, 'the new key')
  assert.equal(runs.at(-1)?.headers['x-plat-exec-key'], 'second')
})

test('a sandbox that refuses the gateway, fails, or does not send JSON is reported as an error of the sandbox', async (t) => {
  const answers: readonly SandboxResponse[] = [
    (_, response) => response.writeHead(401).end(),
    (_, response) => response.writeHead(500).end(),
    (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    (_, response) => response.writeHead(200, { 'content-type': 'text/plain' }).end('{}'),
    (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"a":1,"a":2}'),
    (_, response) => response.destroy(),
  ]
  let next = 0
  const { run } = await setUp(t, { answer: (received, response) => answers[next]?.(received, response) })
  const refusals: string[] = []
  for (; next < answers.length; next++) {
    const { status, body } = await run({ code: 'x' })
    assert.equal(status, 502)
    refusals.push(`${body.error}: ${body.message}`)
  }
  assert.deepEqual(refusals, [
    'upstream_credential: the sandbox does not accept the gateway',
    'upstream_error: the sandbox answered 500',
    'upstream_error: the sandbox answered 302',
    'upstream_error: the sandbox sent a response that is not JSON',
    'upstream_error: the sandbox sent a response that is not strict JSON',
    'upstream_error: the sandbox broke the connection',
  ])
})

test('a refusal of the sandbox is relayed unchanged', async (t) => {
  const { run, counted } = await setUp(t, {
    answer: (_, response) =>
      response.writeHead(422, { 'content-type': 'application/json', 'x-secret': 's' }).end('{"detail":"no python"}'),
  })
  const { status, text, headers } = await run({ code: 'x' })
  assert.deepEqual([status, text, headers.get('x-secret')], [422, '{"detail":"no python"}', null])
  assert.ok(await counted('error'))
})

test('code and its output are redacted', async (t) => {
  const config = { dlpProfiles: { cards: { detectors: ['credit_card'] } }, dlp: { servers: { 'plat-exec': 'cards' } } }
  const { run, runs } = await setUp(t, {
    config,
    answer: (_, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ stdout: `it is ${CARD}`, files: [{ text: CARD }] })),
  })
  const { status, text } = await run({ code: `pay('${CARD}')`, timeoutSeconds: 7 })
  assert.equal(status, 200)
  assert.doesNotMatch(text, /4111/)
  assert.doesNotMatch(runs[0]?.body ?? '4111', /4111/)
  assert.equal(runs[0]?.headers['x-plat-exec-timeout'], '7')
})

test('the code of a caller that disconnects is aborted', async (t) => {
  const lost: Promise<unknown>[] = []
  const { gateway, token, outcome } = await setUp(t, {
    answer: (_, response) => void lost.push(once(response, 'close')),
  })
  const leaving = new AbortController()
  const headers = { authorization: `Bearer ${token()}`, 'content-type': 'application/json' }
  const received = fetch(`${gateway.url}/v1/sessions/s1/exec`, {
    method: 'POST',
    headers,
    body: '{}',
    signal: leaving.signal,
  })
  await until(() => lost.length === 1, 'the code to run')
  leaving.abort()
  await assert.rejects(received)
  await Promise.all(lost)
  assert.equal((await outcome()).result, 'cancelled')
})

test('code can be run through the admin listener as well, only for its session', async (t) => {
  const { run, gateway, runs } = await setUp(t, { config: { adminListen: 'localhost:0' } })
  assert.notEqual(gateway.adminUrl, gateway.url)
  assert.equal((await run({ code: 'x' }, { at: gateway.adminUrl })).status, 200)
  assert.equal((await run({ code: 'x' }, { at: gateway.adminUrl, id: 's2' })).status, 404)
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body: '{}' }
  assert.equal((await fetch(`${gateway.adminUrl}/v1/sessions/s1/exec`, init)).status, 401)
  // Other paths still belong to the admin API.
  const page = await fetch(`${gateway.adminUrl}/v1/sessions/s1/timeline`, {
    headers: { authorization: headers.authorization },
  })
  assert.equal(page.status, 200)
  assert.equal(runs.length, 1)
})

test('the path of exec responds with 404 while exec is disabled', async (t) => {
  const { run } = await setUp(t, { exec: { enabled: false } })
  const { status, body } = await run({ code: 'x' })
  assert.deepEqual([status, body.error], [404, 'not_found'])
})
