import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { startUp, type Up } from '@plat/cli'
import { wholeLines } from '@plat/testkit/ledger'
import { denialIn } from '@plat/testkit/mcp/denial'
import { type Script, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'

/**
 * A revocation that takes longer than this to reach a live call is broken, in milliseconds. The promise is a second; the rest is for
 * machines that have much else to do.
 */
const REACHES_WITHIN_MS = 10_000
/** Attempts: a machine that stalls affects one attempt, a faulty gateway all of them. */
const TRIES = 3
/** Open streams when all callers are revoked. */
const MANY = 200

let up: Up
let dir = ''
const closers: (() => unknown)[] = []

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'plat-'))
  closers.push(() => rm(dir, { recursive: true }))
  const upstream = await startScriptedUpstream()
  closers.push(() => upstream.close())
  upstream.answers(upstreamScript)
  await put('resources/mcpservers/default/notes.yaml', 'MCPServer', 'notes', { url: upstream.url })
  for (const name of ['assistant', 'planner', 'mallory']) {
    const spec = { image: 'example.com/a:1', tier: 'tier-0', policyRef: 'all', tools: [{ name: 'notes' }] }
    await put(`resources/agents/default/${name}.yaml`, 'Agent', name, spec)
  }
  const rules = [{ name: 'all', action: 'allow' }]
  await put('resources/toolpolicies/default/all.yaml', 'ToolPolicy', 'all', { rules })
  await writeList([])
  await writeFile(join(dir, 'gateway.json'), JSON.stringify({ revocationsFile: join(dir, 'revocations.json') }))
  await start()
  closers.push(() => up.stop())
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

async function start(): Promise<void> {
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
}

/** `quick` responds at once; `slow` sends one progress event; a listener receives nothing. */
const upstreamScript: Script = (request, response) => {
  const call = request.method === 'POST' ? JSON.parse(request.body) : null
  if (call?.params?.name === 'quick') {
    const result = { content: [{ type: 'text', text: 'done' }] }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, result }))
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const params = { progressToken: 1, progress: 1 }
  response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })}\n\n`)
}

async function put(path: string, kind: string, name: string, spec: object): Promise<void> {
  const file = join(dir, path)
  await mkdir(dirname(file), { recursive: true })
  const metadata = { name, namespace: 'default' }
  await writeFile(file, JSON.stringify({ apiVersion: 'plat.dev/v1alpha1', kind, metadata, spec }))
}

/** As the operator writes it: whole or not at all. */
async function writeList(revocations: readonly object[]): Promise<void> {
  const file = join(dir, 'revocations.json')
  await writeFile(`${file}.tmp`, JSON.stringify({ version: 1, revocations }))
  await rename(`${file}.tmp`, file)
}

async function token(agent: string, session: string): Promise<string> {
  const response = await fetch(`${up.env.PLAT_IDENTITY_URL}/v1/token`, {
    method: 'POST',
    headers: { authorization: `Bearer ${up.env.PLAT_BROKER_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ namespace: 'default', agent, session, scopes: ['tools:notes'], tier: 'tier-0' }),
  })
  return String((await members(response)).token)
}

async function members(response: Response): Promise<Readonly<Record<string, unknown>>> {
  const body: unknown = await response.json()
  assert.ok(typeof body === 'object' && body !== null)
  return Object.fromEntries(Object.entries(body))
}

function ask(bearer: string, tool: string | null): Promise<Response> {
  const headers = { authorization: `Bearer ${bearer}`, accept: 'application/json, text/event-stream' }
  const url = `${up.env.PLAT_GATEWAY_URL}/mcp/notes`
  if (tool === null) return fetch(url, { headers })
  const params = { name: tool, arguments: {}, _meta: { progressToken: 1 } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  return fetch(url, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body })
}

/** Returns the code of a refusal, or `ok`. */
async function code(bearer: string): Promise<string> {
  const response = await ask(bearer, 'quick')
  return String(denialIn(await members(response))?.data.error ?? 'ok')
}

/** A stream that runs, and what it said until it ended. */
interface Running {
  readonly ended: Promise<{ readonly text: string; readonly at: number }>
}

/** Resolves once the stream runs. */
async function stream(bearer: string, tool: string | null): Promise<Running> {
  const response = await ask(bearer, tool)
  assert.equal(response.status, 200)
  assert.ok(response.body)
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = (await reader.read()).value ?? ''
  const read = async () => {
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value
    return { text, at: performance.now() }
  }
  return { ended: read() }
}

async function api(method: string, path: string, body?: object) {
  const response = await fetch(up.env.PLAT_GATEWAY_URL + path, {
    method,
    headers: {
      authorization: `Bearer ${up.env.PLAT_ADMIN_TOKEN}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: response.status === 204 ? {} : await members(response) }
}

/** Each try answers the milliseconds that it took. */
async function assertReaches(what: string, attempt: () => Promise<number>): Promise<void> {
  const took: number[] = []
  for (let last = Number.POSITIVE_INFINITY; last >= REACHES_WITHIN_MS; took.push(last)) {
    assert.ok(took.length < TRIES, `${what}: ${took.join(', ')} ms`)
    last = await attempt()
  }
}

async function metric(name: string): Promise<string | undefined> {
  const text = await (await fetch(`${up.env.PLAT_GATEWAY_URL}/metrics`)).text()
  return text
    .split('\n')
    .find((line) => line.startsWith(`${name} `))
    ?.slice(name.length + 1)
}

test('a revocation reaches a running stream and a long call, and refuses the next request', async () => {
  // Shows D3.endpoint.revocations, D3.adminAuth.role.killswitch, D3.metric.plat_gateway_revoked_total,
  // D3.metric.plat_gateway_revocations_active, D3.metric.plat_gateway_revocation_propagation_seconds and
  // D3.metric.plat_gateway_revocation_propagation_max_seconds.
  const bearer = await token('assistant', 'one')
  const other = await token('assistant', 'two')
  const [listening, calling, spared] = await Promise.all([
    stream(bearer, null),
    stream(bearer, 'slow'),
    stream(other, 'slow'),
  ])
  const began = performance.now()
  const { status, body } = await api('POST', '/v1/revocations', {
    target: { session: 'default/assistant/one' },
    reason: 'lost laptop',
  })
  assert.deepEqual([status, body.cut, body.mode, body.reason, body.expiresAt], [201, 2, 'revoke', 'lost laptop', null])
  assert.equal(await code(bearer).catch(() => 'no body'), 'revoked')
  assert.equal(await code(other), 'ok')
  for (const running of [listening, calling]) {
    const { at } = await running.ended
    assert.ok(at - began < REACHES_WITHIN_MS, `${at - began} ms`)
  }
  const last = (await calling.ended).text
  assert.match(last, /"error":"revoked"/)
  assert.doesNotMatch(last, /laptop/)
  assert.equal(await metric('plat_gateway_revoked_total{scope="session"}'), '3')
  assert.equal(await metric('plat_gateway_revocations_active{source="breakglass"}'), '1')
  assert.equal(await metric('plat_gateway_revocation_propagation_seconds_count'), '1')
  const longest = Number(await metric('plat_gateway_revocation_propagation_max_seconds'))
  assert.ok(longest > 0 && longest < REACHES_WITHIN_MS / 1000, String(longest))
  assert.equal((await api('DELETE', `/v1/revocations/${body.id}`)).status, 204)
  assert.equal((await api('DELETE', `/v1/revocations/${body.id}`)).status, 404)
  assert.equal(await code(bearer), 'ok')
  // Only now is the other session's call ended, so it outlived all of that.
  await api('POST', '/v1/revocations', { target: { session: 'default/assistant/two' } })
  assert.match((await spared.ended).text, /revoked/)
})

test('an invalid revocation is refused with its field, and one without the token is unauthorized', async () => {
  const wrong: readonly [object, RegExp][] = [
    [{}, /target/],
    [{ target: {} }, /target/],
    [{ target: { user: 'ada', all: true } }, /target/],
    [{ target: { everybody: true } }, /target|everybody/],
    [{ target: { agent: 'assistant' } }, /target\.agent/],
    [{ target: { all: true }, mode: 'pause' }, /mode/],
    [{ target: { all: true }, expiresAt: '2026-01-01T00:00:00Z' }, /expiresAt: must be in the future/],
    [{ target: { all: true }, expiresAt: '2099-19-01T00:00:00Z' }, /expiresAt: not a valid time/],
    [{ target: { all: true }, id: 'mine' }, /id|additional/],
  ]
  for (const [revocation, expected] of wrong) {
    const { status, body } = await api('POST', '/v1/revocations', revocation)
    assert.deepEqual([status, body.error], [400, 'invalid_request'], JSON.stringify(revocation))
    assert.match(String(body.message), expected)
  }
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ target: { all: true } })
  const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/v1/revocations`, { method: 'POST', headers, body })
  assert.equal(response.status, 401)
  assert.equal(await code(await token('assistant', 'three')), 'ok')
})

test('a revocation survives a restart, until it is lifted or expires', async () => {
  // Shows D3.state.stateBackend.type.file.
  // Shows D3.cost.revocationsJournalPath.
  const target = { agent: 'default/mallory' }
  const { body: created } = await api('POST', '/v1/revocations', { target, mode: 'suspend' })
  const short = { target: { user: 'ada' }, expiresAt: new Date(Date.now() + 2_000).toISOString() }
  const { body: ended } = await api('POST', '/v1/revocations', short)
  await up.stop()
  await start()
  const bearer = await token('mallory', 'm')
  assert.equal(await code(bearer), 'suspended')
  assert.equal(await code(await token('planner', 'p')), 'ok')
  const listedIds = async () => {
    const { items } = (await api('GET', '/v1/revocations')).body
    assert.ok(Array.isArray(items))
    return items.map((item) => item.id)
  }
  assert.ok((await listedIds()).includes(created.id))
  await until(async () => !(await listedIds()).includes(ended.id), 'the expired revocation to be removed')
  assert.equal((await api('DELETE', `/v1/revocations/${created.id}`)).status, 204)
  assert.equal(await code(bearer), 'ok')
  await up.stop()
  await start()
  assert.equal(await code(await token('mallory', 'm')), 'ok')
})

test('each revocation is recorded with its target and author, and the ledger never contains a token', async () => {
  const lines = wholeLines(join(dir, '.plat/state/audit.jsonl'))
  const records = lines
    .map((line) => JSON.parse(line).rec)
    .filter((rec) => rec.kind === 'revocation' && rec.agent === 'mallory')
  assert.deepEqual(
    records.map(({ source, action, scope, target, namespace, by }) => [source, action, scope, target, namespace, by]),
    [
      ['breakglass', 'suspend', 'agent', 'default/mallory', 'default', 'token:admin'],
      ['breakglass', 'lift', 'agent', 'default/mallory', 'default', 'token:admin'],
    ],
  )
  const cuts = lines.filter((line) => line.includes('"result":"cut"') && line.includes('"code":"revoked"'))
  assert.ok(cuts.length >= 3, `${cuts.length} outcomes of calls that were cut`)
  const ofCalls = lines.filter((line) => !line.includes('"kind":"checkpoint"'))
  assert.ok(!ofCalls.some((line) => line.includes('eyJ')))
})

test('an entry of the revocations file ends a running stream; once it no longer applies, calls pass', async () => {
  // Shows D3.cost.revocationsFile and D3.cost.revocationsRecheckMillis.
  const bearer = await token('planner', 'p')
  await assertReaches('a file', async () => {
    const { ended } = await stream(bearer, 'slow')
    const began = performance.now()
    const createdAt = new Date().toISOString()
    await writeList([
      { id: 'r1', target: { namespace: 'default' }, mode: 'revoke', reason: 'drill', createdAt, expiresAt: null },
    ])
    const { at, text } = await ended
    assert.match(text, /"error":"revoked"/)
    assert.equal(await code(bearer), 'revoked')
    assert.equal((await api('DELETE', '/v1/revocations/r1')).status, 409)
    await writeList([])
    await until(async () => (await code(bearer)) === 'ok', 'its end')
    return at - began
  })
})

test('without a readable, valid file every call is denied, running ones too, until there is one again', async () => {
  // Shows D3.cost.revocationsFile.failsClosed, D3.error.revocationsFile and D3.metric.plat_gateway_revocation_list_ok.
  const file = join(dir, 'revocations.json')
  const bearers = await Promise.all(['assistant', 'planner', 'mallory'].map((agent) => token(agent, 'f')))
  const faults: readonly [string, () => Promise<void>][] = [
    ['missing', () => rm(file)],
    ['no JSON', () => writeFile(file, '{"version":1,"revocations":[')],
    ['another version', () => writeFile(file, '{"version":2,"revocations":[]}')],
    ['an unknown member', () => writeFile(file, '{"version":1,"revocations":[],"more":1}')],
    ['a folder', () => rm(file, { force: true }).then(() => mkdir(file))],
  ]
  for (const [name, plant] of faults) {
    await assertReaches(name, async () => {
      const streams = await Promise.all(bearers.map((bearer) => stream(bearer, 'slow')))
      await plant()
      const began = performance.now()
      const ends = await Promise.all(streams.map(({ ended }) => ended))
      for (const { text } of ends) assert.match(text, /revocations_unavailable/, name)
      const codes = await Promise.all(Array.from({ length: 30 }, (_, n) => code(bearers[n % bearers.length] ?? '')))
      assert.deepEqual([...new Set(codes)], ['revocations_unavailable'], name)
      assert.equal(await metric('plat_gateway_revocation_list_ok'), '0')
      await rm(file, { recursive: true, force: true })
      await writeList([])
      await until(async () => (await code(bearers[0] ?? '')) === 'ok', `the end of ${name}`)
      assert.equal(await metric('plat_gateway_revocation_list_ok'), '1')
      return Math.max(...ends.map(({ at }) => at)) - began
    })
  }
})

test(`one revocation of all callers aborts ${MANY} running streams`, async (t) => {
  const bearers = await Promise.all(Array.from({ length: 20 }, (_, n) => token('planner', `s${n}`)))
  await assertReaches('everybody', async () => {
    const streams = await Promise.all(
      Array.from({ length: MANY }, (_, n) => stream(bearers[n % bearers.length] ?? '', n % 2 === 0 ? 'slow' : null)),
    )
    const began = performance.now()
    const { body } = await api('POST', '/v1/revocations', { target: { all: true }, mode: 'suspend' })
    // A call whose answer has come may still be about to leave.
    assert.ok(Number(body.cut) >= MANY, String(body.cut))
    const ends = await Promise.all(streams.map(({ ended }) => ended))
    const took = ends.map(({ at }) => at - began).sort((a, b) => a - b)
    t.diagnostic(`p99 ${took[Math.ceil(MANY * 0.99) - 1]?.toFixed(1)} ms, longest ${took.at(-1)?.toFixed(1)} ms`)
    assert.equal((await api('DELETE', `/v1/revocations/${body.id}`)).status, 204)
    return took.at(-1) ?? 0
  })
})
