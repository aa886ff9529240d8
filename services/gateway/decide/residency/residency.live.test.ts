import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createDialer, createRangeCheck, dialFault, type Residency } from '@plat/http'
import { silentLog } from '@plat/process'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { json, type Script, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { started } from '../../testing/started.ts'
import { residentDialer } from './dialer.ts'
import { serverOn } from './testing.ts'

const LIMITS = { maxBytes: 1000, timeoutMs: 60_000 }

test('every connection complies with the rules in force when it is requested; connections of other rules are not reused', async (t) => {
  const server = await serverOn(t, '127.0.0.1')
  let rules: Residency | null = null
  const current = () => (rules === null ? null : { dial: rules, fault: () => null })
  const dialer = residentDialer(createDialer({ log: silentLog }), current)
  t.after(() => dialer.close())
  const fetched = (purpose: 'jwks' | 'guard') =>
    dialer.fetchBytes(server.url, purpose, LIMITS).then(({ status }) => String(status), dialFault)
  const connected = () =>
    dialer.connect(new URL(server.url.replace('http:', 'tcp:')), 'sink', LIMITS).then((socket) => {
      socket.destroy()
      return 'connected'
    }, dialFault)
  const sent = (options?: { caPEM: string }) =>
    new Promise<string>((resolve) => {
      const request = { method: 'GET', path: '/', headers: {}, body: null, headersTimeoutMs: 0, pauseTimeoutMs: 0 }
      dialer.client(server.url, 'mcp', options).send(request, {
        onHead: (status) => resolve(String(status)),
        onData() {},
        onEnd() {},
        onFailure: (error) => resolve(dialFault(error)),
      })
    })
  assert.deepEqual([await fetched('jwks'), await sent(), await connected()], ['200', '200', 'connected'])
  rules = { mark: 'elsewhere', admits: createRangeCheck(['127.0.0.2/32']) }
  assert.deepEqual(
    [await fetched('jwks'), await fetched('guard'), await sent(), await connected()],
    ['residency', 'residency', 'residency', 'residency'],
  )
  rules = { mark: 'here', admits: createRangeCheck(['127.0.0.0/8']) }
  const before = server.connections()
  assert.deepEqual([await fetched('jwks'), await sent(), await sent()], ['200', '200', '200'])
  assert.equal(server.connections(), before + 2)
  rules = null
  assert.equal(await sent(), '200')
})

const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'add', arguments: {} } }

interface ResidencyFixture {
  /** Calls a server or route from a session of this tier. Returns the error code, or `ok`. */
  ask(path: string, model?: string, tier?: string): Promise<string>
  /** Writes the rules. Resolves when they are in force. */
  rules(rules: object): Promise<void>
  records(): Promise<Readonly<Record<string, unknown>>[]>
}

const BARS = { requireJurisdiction: true, allowedJurisdictions: ['DE'] }

/** A server and a model in one. */
const respond: Script = (request, response) => {
  const model = request.body.includes('"messages"')
  const completion = {
    id: 'c',
    object: 'chat.completion',
    choices: [],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
  }
  const body = model ? completion : { jsonrpc: '2.0', id: 1, result: { content: [] } }
  return json(JSON.stringify(body))(request, response)
}

function routesTo(upstream: string) {
  const route = (jurisdiction: string) => ({ upstream, jurisdiction })
  const bedrock = (region: string) => ({
    provider: 'bedrock',
    mode: 'openai',
    upstream,
    region,
    auth: { type: 'none' },
  })
  return {
    near: route('DE'),
    far: route('US'),
    both: { ...route('US'), fallbacks: [route('DE')] },
    frankfurt: bedrock('eu-central-1'),
    virginia: bedrock('us-east-1'),
    unknown: bedrock('eu-central-99'),
    back: { ...bedrock('us-east-1'), fallbacks: [bedrock('eu-central-1')] },
    nowhere: { ...bedrock('us-east-1'), fallbacks: [bedrock('us-west-2')] },
  }
}

async function setUp(t: TestContext): Promise<ResidencyFixture> {
  const dir = tempFolder()
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(respond)
  const server = (jurisdiction: string) => ({
    url: upstream.url,
    namespaces: [],
    implicit: false,
    trust: 'trusted',
    dataClass: 'internal',
    jurisdiction,
    auth: { type: 'none' },
  })
  const servers = { 'default/near': server('DE'), 'default/far': server('US') }
  const file = (name: string) => join(dir, name)
  await writeFile(file('upstreams.json'), JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} }))
  await writeFile(file('sovereignty.json'), '{}')
  const { gateway, issuer } = await started(t, {
    policyReloadSeconds: 1,
    upstreams: { static: upstream.url },
    upstreamsFile: file('upstreams.json'),
    models: routesTo(upstream.url),
    sovereigntyPolicyFile: file('sovereignty.json'),
    auditPath: file('audit.jsonl'),
  })
  const scope =
    'tools:near tools:far tools:static models:near models:far models:both models:frankfurt models:virginia models:unknown models:back models:nowhere'
  const ask = async (path: string, model = 'm', tier = 'tier-0') => {
    const headers = {
      authorization: `Bearer ${issuer.token({ scope, plat_tier: tier })}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    }
    const body = path.startsWith('/llm/') ? { model, messages: [{ role: 'user', content: 'x' }] } : call
    const response = await fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    const text = await response.text()
    return /"(?:error|code)":"([a-z_]+)"/.exec(text)?.[1] ?? (response.ok ? 'ok' : text)
  }
  /** Distinguishes one set of rules from the next. */
  let marked = 0
  return {
    ask,
    async rules(rules) {
      const probe = { ...rules, auditRetentionDays: marked++ % 2 === 0 ? 1 : 1000 }
      await writeFile(file('sovereignty.json'), JSON.stringify(probe))
      const wanted = `plat_gateway_audit_retention_below_ai_act ${Number(probe.auditRetentionDays === 1)}`
      const isApplied = async () =>
        (await (await fetch(`${gateway.adminUrl}/metrics`)).text()).includes(`\n${wanted}\n`)
      await until(isApplied, 'the rules to be read')
    },
    async records() {
      const lines = wholeLines(file('audit.jsonl'))
      return lines.map((line) => Object(JSON.parse(line)).rec)
    },
  }
}

const LLM = '/v1/chat/completions'

test('the region of a model sets its jurisdiction, and an inference profile widens it', async (t) => {
  // Shows D2.model.region, D2.model.region.jurisdiction, D2.fallback.region.
  const { ask, rules } = await setUp(t)
  await rules({ requireJurisdiction: true, allowedJurisdictions: ['EU'] })
  const no = 'residency_denied'
  const answers = async (route: string, model: string) => ask(`/llm/${route}${LLM}`, model)
  assert.equal(await answers('frankfurt', 'amazon.nova'), 'ok')
  assert.equal(await answers('frankfurt', 'eu.amazon.nova'), 'ok')
  assert.equal(await answers('frankfurt', 'global.amazon.nova'), no)
  assert.equal(await answers('frankfurt', 'arn:aws:bedrock:us-east-1::foundation-model/amazon.nova'), no)
  assert.equal(await answers('virginia', 'amazon.nova'), no)
  assert.equal(await answers('unknown', 'amazon.nova'), no)
  assert.deepEqual([await answers('back', 'amazon.nova'), await answers('nowhere', 'amazon.nova')], ['ok', no])
})

test('servers and model routes are reached only if they comply, and every refusal is recorded', async (t) => {
  // Shows D3.policy.sovereigntyPolicyFile, D3.route.jurisdiction, D2.server.jurisdiction, D2.model.jurisdiction.
  // Shows D2.model.fallbacks.sovereignty.
  const { ask, rules, records } = await setUp(t)
  const all = ['/mcp/near', '/mcp/far', '/mcp/static', `/llm/near${LLM}`, `/llm/far${LLM}`, `/llm/both${LLM}`]
  const outcomes = async () => Promise.all(all.map((path) => ask(path)))
  assert.deepEqual(await outcomes(), ['ok', 'ok', 'ok', 'ok', 'ok', 'ok'])
  await rules(BARS)
  const no = 'residency_denied'
  assert.deepEqual(await outcomes(), ['ok', no, no, 'ok', no, 'ok'])
  const refusals = async () => (await records()).filter(({ code }) => code === no)
  await until(async () => (await refusals()).length >= 3, 'the refusal records')
  const denied = await refusals()
  assert.deepEqual(denied.map(({ kind, reason }) => `${kind}: ${reason}`).toSorted(), [
    'decision: far runs in US, which is not allowed',
    'decision: llm/far runs in US, which is not allowed',
    'decision: static does not say where it runs, which is required',
  ])
  await rules({ allowedCIDRs: ['127.0.0.2/32'] })
  assert.deepEqual(new Set(await outcomes()), new Set([no]))
  await rules({ allowedCIDRs: ['127.0.0.0/8'] })
  assert.deepEqual(new Set(await outcomes()), new Set(['ok']))
})

test('a session is refused if its tier runs in a jurisdiction that the data must not reach', async (t) => {
  const { ask, rules, records } = await setUp(t)
  const all = ['/mcp/near', `/llm/near${LLM}`, '/mcp/static']
  const outcomes = async (tier: string) => Promise.all(all.map((path) => ask(path, 'm', tier)))
  const no = 'residency_denied'
  const tierJurisdictions = { 'tier-1': 'US', 'tier-2': 'DE' }
  await rules({ tierJurisdictions })
  assert.deepEqual(await outcomes('tier-1'), ['ok', 'ok', 'ok'])
  await rules({ allowedJurisdictions: ['EU'], tierJurisdictions })
  assert.deepEqual(await outcomes('tier-0'), ['ok', 'ok', 'ok'])
  assert.deepEqual(await outcomes('tier-1'), [no, no, no])
  assert.deepEqual(await outcomes('tier-2'), ['ok', 'ok', 'ok'])
  const denied = async () => (await records()).filter(({ code }) => code === no)
  await until(async () => (await denied()).length >= 3, 'the refusal records')
  assert.equal((await denied())[0]?.reason, 'the session is of tier tier-1, which runs in US, which is not allowed')
  await rules({ dataClassRules: { internal: { deniedJurisdictions: ['US-CA'] } }, tierJurisdictions })
  assert.deepEqual(await outcomes('tier-1'), [no, no, no])
  await rules({ dataClassRules: { confidential: { deniedJurisdictions: ['US'] } }, tierJurisdictions })
  assert.deepEqual(await outcomes('tier-1'), ['ok', 'ok', 'ok'])
})

test('a model is called first in the jurisdiction of the tier, unless the configuration names another', async (t) => {
  const [us, de] = [await startScriptedUpstream(), await startScriptedUpstream()]
  t.after(() => Promise.all([us.close(), de.close()]))
  us.answers(respond)
  de.answers(respond)
  const sovereigntyPolicyFile = join(tempFolder(), 'sovereignty.json')
  const file = { version: 1, tierJurisdictions: { 'tier-1': 'US', 'tier-2': 'DE' } }
  await writeFile(sovereigntyPolicyFile, JSON.stringify(file))
  const fallbacks = [{ upstream: de.url, jurisdiction: 'DE' }]
  const { gateway, issuer } = await started(t, {
    sovereigntyPolicyFile,
    models: { both: { upstream: us.url, jurisdiction: 'US', fallbacks } },
    modelRouting: { tierJurisdictions: { 'tier-1': 'DE' } },
  })
  const ask = async (tier: string) => {
    const authorization = `Bearer ${issuer.token({ scope: 'models:both', plat_tier: tier })}`
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
    const headers = { authorization, 'content-type': 'application/json' }
    const response = await fetch(`${gateway.url}/llm/both${LLM}`, { method: 'POST', headers, body })
    assert.equal(response.status, 200, await response.text())
    return [us.received.length, de.received.length]
  }
  assert.deepEqual(
    [await ask('tier-0'), await ask('tier-2'), await ask('tier-1')],
    [
      [1, 0],
      [1, 1],
      [1, 2],
    ],
  )
})

test('a gateway whose file is missing starts, reaches nothing, and recovers when the file appears', async (t) => {
  const dir = tempFolder()
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const sovereigntyPolicyFile = join(dir, 'sovereignty.json')
  const own = { sovereigntyPolicyFile, policyReloadSeconds: 1, upstreams: { notes: upstream.url } }
  const { gateway, issuer } = await started(t, own)
  const headers = {
    authorization: `Bearer ${issuer.token()}`,
    accept: 'application/json',
    'content-type': 'application/json',
  }
  const refused = async () => {
    const response = await fetch(`${gateway.url}/mcp/notes`, { method: 'POST', headers, body: JSON.stringify(call) })
    return (await response.text()).includes('"residency_denied"')
  }
  assert.equal(await refused(), true)
  assert.equal(upstream.received.length, 0)
  await writeFile(sovereigntyPolicyFile, '{"version": 1}')
  await until(async () => !(await refused()), 'the file to be read')
})

test('endpoints that do not comply get no health checks', async (t) => {
  const dir = tempFolder()
  const [near, far] = [await serverOn(t, '127.0.0.1'), await serverOn(t, '127.0.0.1')]
  const sovereigntyPolicyFile = join(dir, 'sovereignty.json')
  await writeFile(sovereigntyPolicyFile, JSON.stringify({ allowedJurisdictions: ['DE'] }))
  const route = ({ url }: { url: string }, jurisdiction: string) => ({ upstream: `${url}v1`, jurisdiction })
  await started(t, {
    sovereigntyPolicyFile,
    models: { near: route(near, 'DE'), far: route(far, 'US') },
    modelRouting: { probeIntervalSeconds: 1 },
  })
  await until(() => near.requests() > 1, 'the second health check of the compliant endpoint')
  assert.equal(far.requests(), 0)
})

test('guards and sinks are reached only if they comply; an unknown jurisdiction complies only if none is required', async (t) => {
  const dir = tempFolder()
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(respond)
  const sovereigntyPolicyFile = join(dir, 'sovereignty.json')
  await writeFile(sovereigntyPolicyFile, JSON.stringify({ ...BARS, allowedJurisdictions: ['EU'] }))
  const route = { models: { near: { upstream: upstream.url, jurisdiction: 'DE' } } }
  const receivers = async () => ({
    guard: await serverOn(t, '127.0.0.1'),
    sink: await serverOn(t, '127.0.0.1'),
    control: await serverOn(t, '127.0.0.1'),
  })
  for (const [jurisdiction, isReached] of [
    ['DE', true],
    ['US', false],
    ['', false],
  ] as const) {
    const { guard, sink, control } = await receivers()
    const { gateway, issuer } = await started(t, {
      ...route,
      sovereigntyPolicyFile,
      guards: [{ name: 'g', type: 'http-json', url: guard.url, on: ['llmPrompt'], timeoutMs: 60_000, jurisdiction }],
      auditSinks: [
        { name: 'tested', type: 'http', url: sink.url, pollIntervalMillis: 10, jurisdiction },
        { name: 'control', type: 'http', url: control.url, pollIntervalMillis: 10, jurisdiction: 'DE' },
      ],
    })
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
    const authorization = `Bearer ${issuer.token({ scope: 'models:near' })}`
    const headers = { authorization, 'content-type': 'application/json' }
    const response = await fetch(`${gateway.url}/llm/near${LLM}`, { method: 'POST', headers, body })
    assert.equal(response.status, 200, await response.text())
    await until(() => control.requests() > 0, 'the records to reach the sink that complies')
    if (isReached) await until(() => sink.requests() > 0, 'the records to reach the sink')
    assert.deepEqual([guard.requests() > 0, sink.requests() > 0], [isReached, isReached], jurisdiction)
  }
})

test('endpointJurisdictions states where key sets run; their keys are fetched only if that complies', async (t) => {
  const sovereigntyPolicyFile = join(tempFolder(), 'sovereignty.json')
  await writeFile(sovereigntyPolicyFile, JSON.stringify(BARS))
  for (const [jurisdiction, isReached] of [
    ['DE', true],
    ['US', false],
  ] as const) {
    const [broker, issuer] = [await serverOn(t, '127.0.0.1'), await serverOn(t, '127.0.0.1')]
    const origin = ({ url }: { readonly url: string }) => new URL(url).origin
    await started(t, {
      sovereigntyPolicyFile,
      identity: {
        jwksURL: broker.url,
        resourceBaseURL: 'http://127.0.0.1',
        trustedIssuers: [{ issuer: origin(issuer), namespace: 'default' }],
      },
      endpointJurisdictions: { [origin(broker)]: jurisdiction, [origin(issuer)]: jurisdiction },
    })
    assert.deepEqual([broker.requests() > 0, issuer.requests() > 0], [isReached, isReached], jurisdiction)
  }
})
