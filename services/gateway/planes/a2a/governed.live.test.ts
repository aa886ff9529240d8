import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { tempFolder } from '@plat/testkit/local'
import { TOKEN } from '../../testing/started.ts'
import { asking, eventsOf, rpc, STRANGER, saying, setUpA2a } from './testing/fixture.ts'

const hello = (more: object = {}) => rpc('SendMessage', saying('hello', more))
const skill = (skillId: string) => ({ metadata: { skillId } })

test('scopes, callers, skills and delegations determine who may call', async (t) => {
  // Shows D2.agent.a2a, D2.a2a.expose, D2.a2a.allowedCallers.needScope, D2.a2a.skills.id.selects,
  // D2.a2a.skills.unlistedDenied, D2.error.unknown_skill, D3.a2a.routesFile, D3.endpoint.a2a.
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const skills = [{ id: 'find', name: 'Find' }]
  const exposed = { 'default/helper': { skills, allowedCallers: ['team/*', 'assistant'] }, 'default/free': {} }
  const { post, token } = await setUpA2a(t, agent, { exposed })
  const wordOf = async (body: object, change: object, name = 'default/helper') => {
    const { error, text } = await post(body, { token: token({ ...change }), agent: name })
    return error === null ? (JSON.parse(text).result === undefined ? text : null) : error.data[0]?.metadata.error
  }
  const near = (scope: string) => ({ scope })
  assert.equal(await wordOf(hello(), near('agents:helper')), null)
  assert.equal(await wordOf(hello(), near('agents:default/helper')), null)
  assert.equal(await wordOf(hello(), near('agents:*')), 'insufficient_scope')
  // The scope is checked first, so that a caller without it does not learn which agents exist.
  assert.equal(await wordOf(hello(), near('x'), 'default/nobody'), 'insufficient_scope')
  assert.equal(await wordOf(hello(), near('agents:nobody'), 'default/nobody'), 'unknown_agent')
  assert.equal(await wordOf(hello(), STRANGER), null)
  assert.equal(await wordOf(hello(), { ...STRANGER, scope: 'agents:helper' }), 'insufficient_scope')
  assert.equal(
    await wordOf(hello(), { ...STRANGER, scope: 'agents:default/free' }, 'default/free'),
    'caller_not_allowed',
  )
  assert.equal(await wordOf(hello(skill('find')), {}), null)
  assert.equal(await wordOf(hello(skill('burn')), {}), 'unknown_skill')
  assert.equal(await wordOf(hello(skill('burn')), { scope: 'agents:free' }, 'default/free'), null)
})

test('a caller with a longer delegation chain than the limit is refused', async (t) => {
  // Shows D3.limit.delegationDepth and D3.a2a.maxDelegationDepth.
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const actedFor = (depth: number): object =>
    depth === 0
      ? { sub: 'user:ada' }
      : { sub: `spiffe://plat.local/ns/default/agent/a${depth}/session/s`, act: actedFor(depth - 1) }
  const delegated = (depth: number) => ({
    act: actedFor(depth),
    plat_delegator_jti: 'j',
    plat_delegation_jtis: Array.from({ length: depth }, (_, at) => `j${at}`),
  })
  const { post, token } = await setUpA2a(t, agent)
  const five = await post(hello(), { token: token(delegated(5)) })
  assert.equal(five.error, null)
  const six = await post(hello(), { token: token(delegated(6)) })
  assert.deepEqual([six.status, six.error?.code, six.error?.data[0]?.reason], [200, 403, 'DELEGATION_TOO_DEEP'])
  const strict = await setUpA2a(t, agent, { a2a: { maxDelegationDepth: 0 } })
  const token1 = strict.token(delegated(1))
  assert.equal((await strict.post(hello(), { token: token1 })).error?.data[0]?.reason, 'DELEGATION_TOO_DEEP')
  assert.equal((await strict.post(hello())).error, null)
})

test('policies see the agent as server and the skill as tool, and every call is recorded and counted', async (t) => {
  // Shows D2.a2a.skills.id.policyTool, D2.a2a.trust, D3.metric.plat_gateway_a2a_calls_total and
  // D3.metric.plat_gateway_a2a_routes.
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const rules = [
    { name: 'all', action: 'allow', match: { servers: ['a2a/default/helper'] } },
    { name: 'no-burning', action: 'deny', match: { tools: ['skill:burn'] } },
    { name: 'no-writing', action: 'deny', match: { skills: ['write*'] }, reason: 'nothing is written' },
    { name: 'no-cancels', action: 'deny', match: { methods: ['CancelTask'] } },
    { name: 'trusted', action: 'deny', when: "target.trust == 'untrusted' && target.skill == 'risky'" },
    { name: 'words', action: 'deny', when: "method == 'SendMessage' && args.params.message.parts[0].text == 'evil'" },
  ]
  const fixture = await setUpA2a(t, agent, {
    rules,
    exposed: { 'default/helper': { trust: 'untrusted' } },
    drained: true,
  })
  const { post, url } = fixture
  const ruleOf = async (body: object) => (await post(body)).error?.data[0]?.metadata.rule ?? null
  assert.equal(await ruleOf(hello()), null)
  assert.equal(await ruleOf(hello(skill('burn'))), 'no-burning')
  assert.equal(await ruleOf(hello(skill('write.mail'))), 'no-writing')
  assert.equal(await ruleOf(hello(skill('risky'))), 'trusted')
  assert.equal(await ruleOf(rpc('SendMessage', saying('evil'))), 'words')
  const task = JSON.parse((await post(rpc('SendMessage', saying('work x')))).text).result.task.id
  assert.equal(await ruleOf(rpc('CancelTask', { id: task })), 'no-cancels')
  assert.equal(await ruleOf(rpc('GetTask', { id: task })), null)

  const metrics = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text()
  for (const line of [
    'plat_gateway_a2a_routes 1',
    'plat_gateway_a2a_calls_total{hop="in",kind="SendMessage",decision="allow"} 2',
    'plat_gateway_a2a_calls_total{hop="in",kind="SendMessage",decision="deny"} 4',
    'plat_gateway_a2a_calls_total{hop="out",kind="SendMessage",decision="allow"} 2',
    'plat_gateway_a2a_calls_total{hop="in",kind="CancelTask",decision="deny"} 1',
    'plat_gateway_requests_total{server="a2a/default/helper",method="GetTask",code="200"} 1',
  ])
    assert.ok(metrics.includes(line), `${line}\n${metrics.match(/.*a2a.*/g)?.join('\n')}`)

  await fixture.drain()
  const recs = (await readFile(fixture.auditPath, 'utf8'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).rec)
  const burn = recs.find(({ rule }) => rule === 'no-burning')
  assert.deepEqual(
    [burn.kind, burn.op, burn.server, burn.tool, burn.method, burn.facts.trust, burn.facts.dataClass],
    ['decision', 'a2a.send', 'a2a/default/helper', 'skill:burn', 'SendMessage', 'untrusted', 'internal'],
  )
  const sent = recs.filter(({ kind, op }) => kind === 'outcome' && op === 'a2a.send').at(-1)
  const got = recs.find(({ kind, op, method }) => kind === 'outcome' && op === 'a2a.task' && method === 'GetTask')
  assert.equal(got.parent, sent.call)
  assert.equal(sent.endpoint, new URL(agent.url).origin)
})

test('data-loss prevention redacts messages of callers and responses of agents, including text in pieces', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const config = {
    dlpProfiles: { cards: { detectors: ['credit_card'], requestAction: 'deny', responseAction: 'redact' } },
    dlp: { defaultProfile: 'cards' },
  }
  const { post, client } = await setUpA2a(t, agent, { config })
  const refused = await post(rpc('SendMessage', saying('work 4111 1111 1111 1111')))
  assert.equal(refused.error?.data[0]?.reason, 'DLP_DENIED')
  assert.equal(agent.reached.length, 0)
  const caller = await client()
  const { all } = eventsOf(caller.sendMessageStream(asking('work my card is 4111 11|11 1111| 1111 thanks|and more')))
  const texts = (await all).flatMap(({ payload }) =>
    payload?.$case === 'artifactUpdate' ? (payload.value.artifact?.parts ?? []) : [],
  )
  const relayed = texts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('')
  assert.match(relayed, /^my card is \[[^\]]+\] thanksand more$/)
  const events = await all
  assert.equal(events.at(-1)?.payload?.$case, 'statusUpdate')
  const task = events[0]?.payload?.$case === 'task' ? events[0].payload.value.id : ''
  const whole = await post(rpc('GetTask', { id: task }))
  assert.equal(/1111/.test(JSON.stringify(JSON.parse(whole.text).result.artifacts)), false, whole.text)
})

test('a skill that requires an approval waits for it, and the repeated message uses it', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const rules = [
    { name: 'all', action: 'allow' },
    { name: 'ask', action: 'require_approval', match: { skills: ['careful'] } },
  ]
  const { post, url } = await setUpA2a(t, agent, { rules, config: { adminAuth: { devTokenApprovers: true } } })
  const admin = (path: string, method = 'GET') =>
    fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(method === 'POST' && { body: '{}' }),
    })
  const careful = (id: number) => rpc('SendMessage', saying('hello', { ...skill('careful'), messageId: `m${id}` }), id)
  const early = await post(careful(1), { headers: { prefer: 'wait=0' } })
  assert.equal(early.error?.data[0]?.reason, 'APPROVAL_PENDING')
  const id = early.error?.data[0]?.metadata.approvalId
  assert.equal(agent.reached.length, 0)
  assert.equal((await admin(`/v1/approvals/${id}/approve`, 'POST')).status, 200)
  // The same message with another id uses the approval.
  assert.equal((await post(careful(2))).error, null)
  const again = await post(careful(3), { headers: { prefer: 'wait=0' } })
  assert.equal(again.error?.data[0]?.reason, 'APPROVAL_PENDING')
})

test('the price of a skill is charged to the budget of its caller', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const pricingFile = join(tempFolder(), 'prices.json')
  const tools = { 'a2a/default/helper/skill:dear': { perCall: '0.006' } }
  await writeFile(pricingFile, JSON.stringify({ version: 1, currency: 'USD', id: 'test', models: {}, tools }))
  const { post } = await setUpA2a(t, agent, { config: { pricingFile, sessionBudgetUSD: 0.01 } })
  assert.equal((await post(hello(skill('dear')))).error, null)
  assert.equal((await post(hello(skill('dear')))).error?.data[0]?.reason, 'BUDGET_EXCEEDED')
  assert.equal((await post(hello(skill('cheap')))).error, null)
  assert.equal(agent.reached.length, 2)
})

test('webhooks are permitted for listed hosts', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { post } = await setUpA2a(t, agent, { a2a: { pushNotificationHosts: ['hooks.example.com'] } })
  const { id } = JSON.parse((await post(rpc('SendMessage', saying('work x')))).text).result.task
  const create = (url: string) => post(rpc('CreateTaskPushNotificationConfig', { taskId: id, id: 'c1', url }))
  assert.equal((await create('https://hooks.example.com/a')).error, null)
  assert.equal((await create('https://evil.example/a')).error?.data[0]?.reason, 'FORBIDDEN')
  const inline = { configuration: { taskPushNotificationConfig: { url: 'https://evil.example/a' } } }
  assert.equal((await post(rpc('SendMessage', { ...saying('hello'), ...inline }))).error?.code, 403)
  const other = { configuration: { pushNotificationConfig: { url: 'https://evil.example/a' } } }
  assert.equal((await post(rpc('SendMessage', { ...saying('hello'), ...other }))).error?.code, -32602)
  const listed = await post(rpc('ListTaskPushNotificationConfigs', { taskId: id }))
  assert.equal(JSON.parse(listed.text).result.configs.length, 1)
  const none = await setUpA2a(t, agent)
  const refused = await none.post(rpc('SendMessage', { ...saying('hello'), ...inline }))
  assert.deepEqual([refused.status, refused.error?.code], [200, -32003])
})

test('agents are added and removed without a restart', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const { post, publish } = await setUpA2a(t, agent, { exposed: {} })
  const wait = async (expected: string | undefined) => {
    while ((await post(hello())).error?.data[0]?.metadata.error !== expected) await new Promise(setImmediate)
  }
  await wait('unknown_agent')
  await publish({ 'default/helper': {} })
  await wait(undefined)
  await publish({})
  await wait('unknown_agent')
})

test('owners of tasks are known after a restart', async (t) => {
  const agent = await startTestAgent()
  t.after(() => agent.close())
  const dir = tempFolder()
  const auditPath = join(dir, 'audit.jsonl')
  const first = await setUpA2a(t, agent, { config: { auditPath }, drained: true })
  const { id } = JSON.parse((await first.post(rpc('SendMessage', saying('work x')))).text).result.task
  await first.drain()
  const second = await setUpA2a(t, agent, { config: { auditPath } })
  assert.equal((await second.post(rpc('GetTask', { id }))).error, null)
  const bob = second.token({ act: { sub: 'user:bob' } })
  assert.equal((await second.post(rpc('GetTask', { id }), { token: bob })).error?.code, -32001)
})
