import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PlanChange, planOf, USUAL_TIERS } from '../testing/plans.ts'
import { readPlan, withoutKeys } from './plan.ts'
import { type TierConfig, Tiers } from './tiers.ts'

async function judged(changes: readonly PlanChange[], own: Partial<TierConfig> = {}, more: object = {}) {
  const plan = await readPlan(planOf(changes, more))
  return typeof plan === 'string' ? assert.fail(plan) : new Tiers({ ...USUAL_TIERS, ...own }).judge(plan)
}

async function tierOf(change: PlanChange, own: Partial<TierConfig> = {}): Promise<string> {
  const { tier, findings } = await judged([change], own)
  return `${tier} ${findings.flatMap(({ causes }) => causes).join(', ')}`.trim()
}

test('the tier of a change follows its risk', async () => {
  assert.equal(await tierOf({}), '0')
  assert.equal(await tierOf({ mode: 'data', actions: ['read'] }), '0')
  assert.equal(await tierOf({ importing: { id: 'i-1' } }), '1 imports')
  assert.equal(await tierOf({ actions: ['create'] }), '1 creates')
  assert.equal(await tierOf({ actions: ['update'] }), '2 updates')
  assert.equal(await tierOf({ actions: ['delete'] }), '3 destroys')
  assert.equal(await tierOf({ actions: ['forget'] }), '3 destroys')
  assert.equal(await tierOf({ actions: ['delete', 'create'] }), '3 creates, destroys')
  assert.equal(await tierOf({ actions: ['create', 'delete'] }), '3 creates, destroys')
  assert.equal(await tierOf({ actions: ['explode'] }), '4 unknown action')
  assert.equal(await tierOf({ mode: 'data', type: 'external', actions: ['read'] }), '3 runs programs')
})

test('sensitive types, built in or configured, are at least of tier 3', async () => {
  // Shows D3.infra.tiers.sensitiveTypes, D3.infra.tiers.addSensitiveTypes and D3.default.computed.infra.tiers.sensitiveTypes.
  for (const type of [
    'aws_iam_role',
    'aws_security_group_rule',
    'google_project_iam_member',
    'azurerm_role_assignment',
  ])
    assert.equal(await tierOf({ type, actions: ['create'] }), '3 creates, sensitive type', type)
  assert.equal(await tierOf({ type: 'aws_iam_role' }), '0')
  assert.equal(await tierOf({ type: 'aws_iam_policy_document', mode: 'data', actions: ['read'] }), '0')
  const added = { addSensitiveTypes: ['acme_*'] }
  assert.equal(await tierOf({ type: 'acme_gate', actions: ['create'] }, added), '3 creates, sensitive type')
  assert.equal(await tierOf({ type: 'aws_iam_role', actions: ['create'] }, added), '3 creates, sensitive type')
  const instead = { sensitiveTypes: ['acme_*'] }
  assert.equal(await tierOf({ type: 'aws_iam_role', actions: ['create'] }, instead), '1 creates')
})

test('data-bearing types are of tier 4 when destroyed, replaced or forgotten', async () => {
  // Shows D3.infra.tiers.dataBearingTypes, D3.infra.tiers.addDataBearingTypes and D3.default.computed.infra.tiers.dataBearingTypes.
  const type = 'aws_db_instance'
  for (const actions of [['delete'], ['delete', 'create'], ['create', 'delete'], ['forget']])
    assert.match(await tierOf({ type, actions }), /^4 .*data-bearing type$/, actions.join())
  assert.equal(await tierOf({ type, actions: ['update'] }), '2 updates, data-bearing type')
  assert.equal(await tierOf({ type, actions: ['create'] }), '1 creates, data-bearing type')
  assert.match(await tierOf({ type: 'acme_disk', actions: ['delete'] }, { addDataBearingTypes: ['acme_disk'] }), /^4/)
  assert.match(await tierOf({ type, actions: ['delete'] }, { addDataBearingTypes: ['acme_disk'] }), /^4/)
  assert.match(await tierOf({ type, actions: ['delete'] }, { dataBearingTypes: ['acme_disk'] }), /^3/)
})

test('a protected address is of tier 4 for any change, in every module and before a move', async () => {
  // Shows D3.infra.tiers.protectedAddresses, D3.infra.tiers.addProtectedAddresses and D3.default.computed.infra.tiers.protectedAddresses.
  const own = { protectedAddresses: ['aws_instance.gate', 'module.prod.*'] }
  const tier = (change: PlanChange) => tierOf({ actions: ['update'], ...change }, own)
  for (const address of [
    'aws_instance.gate',
    'aws_instance.gate[0]',
    'aws_instance.gate["a].b"]',
    'module.a.aws_instance.gate',
    'module.a["x"].module.b[1].aws_instance.gate["k"]',
    'module.prod.aws_instance.web',
    'module.prod["eu"].aws_instance.web',
    'module.a.module.prod.aws_instance.web',
  ])
    assert.equal(await tier({ address }), '4 updates, protected address', address)
  for (const address of ['aws_instance.gates', 'module.a.aws_instance.gate_2', 'module.product.aws_instance.web'])
    assert.equal(await tier({ address }), '2 updates', address)
  const one = { protectedAddresses: ['aws_instance.web["eu"]'] }
  const instance = (key: string) => tierOf({ address: `module.a.aws_instance.web["${key}"]`, actions: ['update'] }, one)
  assert.deepEqual([(await instance('eu')).slice(0, 1), (await instance('us')).slice(0, 1)], ['4', '2'])
  assert.match(await tier({ address: 'aws_instance.new', previous_address: 'aws_instance.gate' }), /^4/)
  assert.match(await tier({ address: 'aws_instance.gate', actions: ['no-op'], importing: { id: 'i' } }), /^4/)
  assert.match(await tierOf({ address: 'aws_s3_bucket.tfstate', actions: ['update'] }), /^4/)
  const added = { addProtectedAddresses: ['aws_instance.gate'] }
  assert.match(await tierOf({ address: 'aws_instance.gate', actions: ['update'] }, added), /^4/)
  assert.match(await tierOf({ address: 'aws_s3_bucket.tfstate', actions: ['update'] }, added), /^4/)
  assert.match(await tierOf({ address: 'aws_s3_bucket.tfstate', actions: ['update'] }, own), /^2/)
})

test('a plan of more resources than maxResources is at least of tier 3', async () => {
  // Shows D3.infra.tiers.maxResources.
  const creates = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ address: `aws_instance.w[${index}]`, actions: ['create'] }))
  assert.deepEqual([(await judged(creates(50))).tier, (await judged(creates(50))).resources], [1, 50])
  const { tier, causes } = await judged(creates(51))
  assert.deepEqual([tier, causes], [3, ['more than 50 resources (infra.tiers.maxResources)']])
  assert.equal((await judged(creates(3), { maxResources: 2 })).tier, 3)
  const reads = Array.from({ length: 60 }, () => ({ mode: 'data', type: 'external', actions: ['read'] }))
  assert.deepEqual([(await judged(reads)).resources, (await judged(reads)).causes], [0, []])
})

test('provisioners and provider actions are of tier 3: they run programs', async () => {
  const resources = [{ address: 'aws_instance.web', mode: 'managed', provisioners: [{ type: 'local-exec' }] }]
  const inModule = {
    root_module: { module_calls: { a: { module: { module_calls: { b: { module: { resources } } } } } } },
  }
  const flat = { configuration: { root_module: { resources } } }
  const create = { actions: ['create'] }
  assert.equal((await judged([create], {}, flat)).tier, 3)
  assert.equal((await judged([{ ...create, address: 'aws_instance.web["a"]' }], {}, flat)).tier, 3)
  assert.equal((await judged([{ ...create, address: 'aws_instance.other' }], {}, flat)).tier, 1)
  assert.equal((await judged([{}], {}, flat)).tier, 0)
  const deep = { ...create, address: 'module.a[0].module.b["x.y"].aws_instance.web' }
  assert.equal((await judged([deep], {}, { configuration: inModule })).tier, 3)
  assert.equal((await judged([create], {}, { configuration: inModule })).tier, 1)
  const invoked = await judged([{}], {}, { action_invocations: [{ address: 'action.aws_lambda_invoke.x' }] })
  assert.deepEqual([invoked.tier, invoked.causes], [3, ['actions of providers run with it']])
})

test('deferred changes count like others', async () => {
  const { resource_changes: later } = Object(planOf([{ type: 'aws_db_instance', actions: ['delete'] }]))
  const deferred = { deferred_changes: [{ reason: 'provider_config_unknown', resource_change: later[0] }] }
  assert.equal((await judged([], {}, deferred)).tier, 4)
})

test('changes are sorted by tier, then by address', async () => {
  const findings = (
    await judged([
      { address: 'aws_instance.b', actions: ['create'] },
      { address: 'aws_instance.c', actions: ['delete'] },
      { address: 'aws_instance.a', actions: ['create'] },
      { address: 'aws_instance.d' },
    ])
  ).findings.map(({ address }) => address)
  assert.deepEqual(findings, ['aws_instance.c', 'aws_instance.a', 'aws_instance.b'])
})

test('an invalid plan is refused with the location of the problem', async () => {
  const one = Object(planOf([{ actions: ['create'] }]))
  const [only] = one.resource_changes
  for (const [plan, words] of [
    [[], /must be an object/],
    [{}, /format_version must be 1\.x/],
    [planOf([], { format_version: '0.2' }), /format_version/],
    [planOf([], { format_version: '2.0' }), /format_version/],
    [planOf([], { errored: true }), /errored is true/],
    [planOf([], { resource_changes: {} }), /resource_changes must be a list/],
    [planOf([], { deferred_changes: 'x' }), /deferred_changes must be a list/],
    [planOf([], { action_invocations: 1 }), /action_invocations must be a list/],
    [planOf([], { resource_changes: [only, null] }), /resource_changes\[1\] must be an object/],
    [planOf([], { resource_changes: [{ ...only, address: '' }] }), /resource_changes\[0\]\.address/],
    [planOf([], { resource_changes: [{ ...only, address: 'a'.repeat(4097) }] }), /resource_changes\[0\]\.address/],
    [planOf([], { resource_changes: [{ ...only, previous_address: 1 }] }), /previous_address/],
    [planOf([], { resource_changes: [{ ...only, type: null }] }), /\.type/],
    [planOf([], { resource_changes: [{ ...only, change: [] }] }), /\.change must be an object/],
    [planOf([], { resource_changes: [{ ...only, change: { actions: [] } }] }), /\.change\.actions/],
    [planOf([], { deferred_changes: [{ reason: 'x' }] }), /deferred_changes\[0\]\.resource_change must be an object/],
    [planOf([], { configuration: [] }), /configuration must be an object/],
    [planOf([], { configuration: { root_module: { resources: {} } } }), /root_module\.resources must be a list/],
    [planOf([], { configuration: { root_module: { module_calls: [] } } }), /module_calls must be an object/],
  ] as const) {
    const read = await readPlan(plan)
    assert.match(typeof read === 'string' ? read : 'it was parsed', words)
  }
})

test('instance keys with any content are removed from an address', async () => {
  assert.equal(withoutKeys('module.a["x\\"].y"].aws_instance.web[3]'), 'module.a.aws_instance.web')
  assert.equal(withoutKeys('aws_instance.web["never closed'), 'aws_instance.web')
  assert.equal(withoutKeys('aws_instance.web'), 'aws_instance.web')
})

test('a pattern matches a protected address in any module, at the start of a module or after a star', async () => {
  const own = { addProtectedAddresses: ['module.prod.*', 'aws_instance.gate', 'module.*.aws_x.*_key'] }
  const protects = async (address: string) =>
    (await judged([{ address, type: 'aws_instance', actions: ['update'] }], own)).findings.some(({ causes }) =>
      causes.includes('protected address'),
    )
  for (const address of [
    'module.a.module.prod.x.y',
    'module.a["b.c"].aws_instance.gate',
    'module.a.module.b.aws_x.my_key',
  ])
    assert.ok(await protects(address), address)
  for (const address of ['module.prod_2.x.y', 'aws_instance.gate_2', 'aws_x.my_key', 'module.a.aws_y.my_key'])
    assert.ok(!(await protects(address)), address)
})
