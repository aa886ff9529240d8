import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setUpInfra, sha256 } from './testing/fixture.ts'
import { planOf } from './testing/plans.ts'

const CREATE = planOf([{ address: 'aws_instance.web', actions: ['create'] }])
const DROP = planOf([
  { address: 'module.shop.aws_db_instance.main["alice"]', type: 'aws_db_instance', actions: ['delete'] },
  { address: 'aws_instance.web', actions: ['update'] },
])

test('a plan is evaluated, and the ledger has its hash', async (t) => {
  // Shows D3.infra.enabled.
  const fixture = await setUpInfra(t)
  const { status, headers, body } = await fixture.post('plans', DROP)
  assert.equal(status, 200)
  assert.deepEqual(body, {
    planSha256: sha256(JSON.stringify(DROP)),
    tier: 4,
    resources: 2,
    causes: [],
    findings: [
      {
        address: 'module.shop.aws_db_instance.main["alice"]',
        type: 'aws_db_instance',
        actions: ['delete'],
        tier: 4,
        causes: ['destroys', 'data-bearing type'],
      },
      { address: 'aws_instance.web', type: 'aws_instance', actions: ['update'], tier: 2, causes: ['updates'] },
    ],
    apply: 'approval',
  })
  const call = headers.get('x-plat-decision-id')
  const { op, server, tool, argsSha256 } = await fixture.record((rec) => rec.call === call && rec.kind === 'outcome')
  assert.deepEqual([op, server, tool, argsSha256], ['infra', 'plat-infra', 'plan', body.planSha256])
  assert.equal(Object((await fixture.post('plans', CREATE)).body).apply, 'allowed')
})

test('without infra.enabled its endpoints do not exist', async (t) => {
  const fixture = await setUpInfra(t, { enabled: false })
  for (const path of ['plans', 'authorizations', 'authorizations/verify'])
    assert.equal((await fixture.post(path, CREATE)).status, 404, path)
})

test('a plan of a low tier is authorized at once, for its session and bytes only', async (t) => {
  const fixture = await setUpInfra(t)
  const text = JSON.stringify(CREATE, null, 1)
  const { status, body } = await fixture.post('authorizations', text)
  assert.equal(status, 201)
  const { authorization, planSha256, tier, resources } = body
  assert.deepEqual([planSha256, tier, resources], [sha256(text), 1, 1])
  const verify = (own: object, token?: string) =>
    fixture.post('authorizations/verify', { authorization, planSha256, ...own }, token)
  const verified = await verify({})
  assert.equal(verified.status, 200)
  assert.deepEqual(verified.body, { planSha256, tier, resources, expiresAt: body.expiresAt })
  const other = await verify({ planSha256: sha256('another') })
  assert.deepEqual([other.status, other.body.error], [403, 'forbidden'])
  const sub = 'spiffe://plat.local/ns/default/agent/assistant/session/s9'
  const stranger = await verify({}, fixture.token({ sub, plat_session: 's9' }))
  assert.deepEqual([stranger.status, stranger.body.error], [404, 'not_found'])
  const forged = `${String(authorization).slice(0, -2)}${String(authorization).endsWith('AA') ? 'BB' : 'AA'}`
  assert.equal((await verify({ authorization: forged })).status, 404)
  assert.equal((await verify({ more: 1 })).status, 400)
})

test('from requireApprovalAtTier on a plan needs an approval, and approvers see its changes', async (t) => {
  // Shows D3.infra.requireApprovalAtTier.
  const fixture = await setUpInfra(t)
  const held = fixture.post('authorizations', DROP)
  const { preview, reason, server, tool } = await fixture.approver.pending()
  assert.deepEqual([server, tool], ['plat-infra', 'apply'])
  assert.match(String(reason), /^a plan of tier 4 that changes 2 resources/)
  assert.deepEqual(Object(preview).text.split('\n').slice(1), [
    'tier 4: delete module.shop.aws_db_instance.main[…] (destroys, data-bearing type)',
    'tier 2: update aws_instance.web (updates)',
  ])
  await fixture.approver.decide('approve')
  const { status, body } = await held
  assert.deepEqual([status, body.tier], [201, 4])
  const again = fixture.post('authorizations', DROP)
  await fixture.approver.decide('deny')
  const denied = await again
  assert.deepEqual([denied.status, denied.body.error], [403, 'approval_denied'])
})

test('5 requires no approval, and 0 one for every plan', async (t) => {
  const never = await setUpInfra(t, { requireApprovalAtTier: 5 })
  assert.equal((await never.post('authorizations', DROP)).status, 201)
  const always = await setUpInfra(t, { requireApprovalAtTier: 0 })
  const held = always.post('authorizations', planOf([]))
  await always.approver.decide('approve')
  assert.equal((await held).status, 201)
})

test('plans above maxTier and of denied types cannot be applied even with an approval', async (t) => {
  // Shows D3.infra.maxTier and D3.infra.denyTypes.
  const fixture = await setUpInfra(t, { maxTier: 2, denyTypes: ['acme_*'] })
  const denied = async (plan: object) => {
    const { status, body } = await fixture.post('authorizations', plan)
    return `${status} ${body.error}: ${body.message}`
  }
  assert.equal(await denied(DROP), '403 policy_denied: the plan is of tier 4, and infra.maxTier is 2')
  const typed = '403 policy_denied: infra.denyTypes names the type of a resource of the plan'
  for (const actions of [['create'], ['read'], ['forget']])
    assert.equal(await denied(planOf([{ type: 'acme_gate', actions }])), typed, actions.join())
  assert.equal((await fixture.post('authorizations', planOf([{ type: 'acme_gate' }]))).status, 201)
  const { body } = await fixture.post('plans', DROP)
  assert.deepEqual([body.apply, body.reason], ['denied', 'the plan is of tier 4, and infra.maxTier is 2'])
})

test('resources changed per hour are limited by the budgets of session and agent', async (t) => {
  // Shows D3.infra.budgets.perSession.resourcesPerHour, D3.infra.budgets.perSession.maxTier,
  // D3.infra.budgets.perAgent.resourcesPerHour.
  // Shows D3.infra.budgets.perSession, D3.infra.budgets.perAgent and D3.infra.budgets.perAgent.maxTier.
  const perAgent = { 'default/assistant': { resourcesPerHour: 3 }, '*': { maxTier: 0 } }
  const fixture = await setUpInfra(t, { budgets: { perSession: { resourcesPerHour: 2, maxTier: 2 }, perAgent } })
  const session = (name: string, agent = 'assistant') =>
    fixture.token({
      sub: `spiffe://plat.local/ns/default/agent/${agent}/session/${name}`,
      plat_session: name,
      plat_agent: agent,
    })
  const apply = async (token: string, plan = CREATE) => {
    const { status, body } = await fixture.post('authorizations', plan, token)
    return status === 201 ? 'given' : `${status} ${body.error}: ${body.message}`
  }
  const [one, other] = [session('one'), session('other')]
  assert.deepEqual([await apply(one), await apply(one)], ['given', 'given'])
  assert.match(
    await apply(one),
    /^429 rate_limited: the limit of \d+ resources an hour \(infra\.budgets\.perSession\.resourcesPerHour\) is used up until 2/,
  )
  assert.equal(await apply(one, planOf([])), 'given')
  assert.equal(await apply(other), 'given')
  assert.match(
    await apply(other),
    /^429 rate_limited: the limit of \d+ resources an hour \(infra\.budgets\.perAgent\.\S+\.resourcesPerHour\) is used up until 2/,
  )
  const three = planOf(['a', 'b', 'c'].map((name) => ({ address: `aws_instance.${name}`, actions: ['create'] })))
  assert.match(
    await apply(session('third'), three),
    /^429 budget_exceeded: .*infra\.budgets\.perSession\.resourcesPerHour is 2/,
  )
  assert.match(await apply(one, DROP), /^403 policy_denied: .*infra\.budgets\.perSession\.maxTier is 2/)
  const { body } = await fixture.post('plans', CREATE, one)
  assert.equal(body.apply, 'allowed')
  assert.match(
    await apply(session('fourth', 'another')),
    /^403 policy_denied: .*infra\.budgets\.perAgent\.\*\.maxTier is 0/,
  )
})

test('budgets and authorizations survive a restart', async (t) => {
  const infra = { budgets: { perSession: { resourcesPerHour: 1 } } }
  const before = await setUpInfra(t, infra, { drained: true })
  const given = await before.post('authorizations', CREATE)
  assert.equal(given.status, 201)
  await before.drain()
  const after = await setUpInfra(t, infra, { config: { auditPath: before.auditPath } })
  const { authorization, planSha256 } = given.body
  assert.equal((await after.post('authorizations/verify', { authorization, planSha256 })).status, 200)
  assert.equal((await after.post('authorizations', CREATE)).body.error, 'rate_limited')
})

test('a refused apply uses no budget', async (t) => {
  const fixture = await setUpInfra(t, { budgets: { perSession: { resourcesPerHour: 2 } } })
  const held = fixture.post('authorizations', DROP)
  await fixture.approver.decide('deny')
  assert.equal((await held).status, 403)
  const two = planOf(['a', 'b'].map((name) => ({ address: `aws_instance.${name}`, actions: ['create'] })))
  assert.equal((await fixture.post('authorizations', two)).status, 201)
})

test('agents without a budget have the one of the star, each separately', async (t) => {
  // Shows D3.infra.budgets.perAgent.everyOther.
  const perAgent = { '*': { resourcesPerHour: 0 }, assistant: { resourcesPerHour: 1 } }
  const fixture = await setUpInfra(t, { budgets: { perAgent } })
  assert.equal((await fixture.post('authorizations', CREATE)).status, 201)
  const { status, headers } = await fixture.post('authorizations', CREATE)
  assert.equal(status, 429)
  assert.ok(Number(headers.get('retry-after')) <= 3600)
  const other = await setUpInfra(
    t,
    { budgets: { perAgent: { '*': { resourcesPerHour: 1 } } } },
    { agents: ['one', 'two'] },
  )
  const as = (agent: string) =>
    other.token({
      sub: `spiffe://plat.local/ns/default/agent/${agent}/session/s`,
      plat_session: 's',
      plat_agent: agent,
    })
  const statusOf = async (agent: string) => (await other.post('authorizations', CREATE, as(agent))).status
  assert.deepEqual([await statusOf('one'), await statusOf('one'), await statusOf('two')], [201, 429, 201])
})

test('policies match plans by server, tool and content; scopes are checked first', async (t) => {
  const rules = [
    { name: 'all', action: 'allow' },
    { name: 'small', action: 'deny', match: { tools: ['apply'] }, when: 'size(args.resource_changes) > 1' },
  ]
  const fixture = await setUpInfra(t, { requireApprovalAtTier: 5 }, { rules })
  assert.equal((await fixture.post('authorizations', CREATE)).status, 201)
  const { status, body } = await fixture.post('authorizations', DROP)
  assert.deepEqual([status, body.error], [403, 'policy_denied'])
  assert.equal((await fixture.post('plans', DROP)).status, 200)
  const unscoped = await fixture.post('plans', CREATE, fixture.token({ scope: 'tools:notes' }))
  assert.deepEqual([unscoped.status, unscoped.body.error], [403, 'insufficient_scope'])
  assert.match(unscoped.headers.get('www-authenticate') ?? '', /scope="tools:plat-infra"/)
})

test('the size of a plan is limited to 16 MiB by default, and to 256 MiB by configuration', async (t) => {
  // Shows D3.limit.plan.
  const MIB = 1024 * 1024
  const fixture = await setUpInfra(t)
  const text = JSON.stringify(CREATE)
  assert.equal((await fixture.post('plans', text.padEnd(16 * MIB))).status, 200)
  const larger = await fixture.post('plans', text.padEnd(16 * MIB + 1))
  assert.deepEqual([larger.status, larger.body.error], [413, 'body_too_large'])
  const most = await setUpInfra(t, { maxPlanBytes: 256 * MIB })
  assert.equal((await most.post('plans', text.padEnd(16 * MIB + 1))).status, 200)
  await assert.rejects(setUpInfra(t, { maxPlanBytes: 256 * MIB + 1 }), /infra\.maxPlanBytes/)
})

test('an oversized plan is refused, and an invalid one with the location of the problem', async (t) => {
  // Shows D3.infra.maxPlanBytes.
  const text = JSON.stringify(CREATE)
  const fixture = await setUpInfra(t, { maxPlanBytes: text.length })
  assert.equal((await fixture.post('plans', text)).status, 200)
  const larger = await fixture.post('plans', `${text} `)
  assert.deepEqual([larger.status, larger.body.error], [413, 'body_too_large'])
  const odd = await fixture.post('plans', '{"format_version":"1.2","resource_changes":[1]}')
  assert.deepEqual([odd.status, odd.body.message], [400, 'resource_changes[0] must be an object'])
  const twice = await fixture.post('plans', '{"format_version":"1.2","format_version":"1.2"}')
  assert.deepEqual([twice.status, twice.body.error], [400, 'invalid_request'])
  assert.equal((await fixture.post('nothing', text)).status, 404)
  const got = await fetch(`${fixture.url}/v1/infra/plans`, { headers: { authorization: `Bearer ${fixture.token()}` } })
  assert.equal(got.status, 405)
})
