import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type PlanChange, planOf, USUAL_TIERS } from '../testing/plans.ts'
import { readPlan } from './plan.ts'
import { type TierResult, Tiers } from './tiers.ts'

const tiers = new Tiers({
  ...USUAL_TIERS,
  addProtectedAddresses: ['aws_instance.gate', 'module.prod.*'],
  maxResources: 6,
})

const names = ['aws_instance.gate', 'aws_instance.web', 'aws_db_instance.main', 'aws_iam_role.r', 'module.prod.aws_x.y']
const changes = fc.array(
  fc.record({
    address: fc.constantFrom(...names).chain((name) => fc.constantFrom(name, `${name}[0]`, `${name}["a].b"]`)),
    type: fc.constantFrom('aws_instance', 'aws_db_instance', 'aws_iam_role', 'aws_s3_bucket', 'external'),
    mode: fc.constantFrom('managed', 'data'),
    actions: fc.constantFrom<readonly string[]>(
      ['no-op'],
      ['read'],
      ['create'],
      ['update'],
      ['delete'],
      ['delete', 'create'],
      ['forget'],
      ['new-word'],
    ),
  }),
  { maxLength: 10 },
)

function judge(told: readonly PlanChange[], more: object = {}): TierResult {
  const plan = readPlan(JSON.parse(JSON.stringify(planOf(told, more))))
  return typeof plan === 'string' ? assert.fail(plan) : tiers.judge(plan)
}

test('the order of a plan changes nothing of its judgement', () => {
  const withShuffled = changes.chain((told) =>
    fc.tuple(fc.constant(told), fc.shuffledSubarray(told, { minLength: told.length })),
  )
  fc.assert(
    fc.property(withShuffled, ([told, shuffled]) => {
      const [one, other] = [judge(told), judge(shuffled)]
      assert.deepEqual([one.tier, one.resources, one.causes], [other.tier, other.resources, other.causes])
    }),
  )
})

test('the order of the actions of a change changes nothing', () => {
  fc.assert(
    fc.property(changes, (told) => {
      const turned = told.map(({ actions, ...rest }) => ({ ...rest, actions: actions.toReversed() }))
      assert.equal(judge(turned).tier, judge(told).tier)
    }),
  )
})

test('what stands beside a change, or in which list it stands, never makes it more harmless', () => {
  fc.assert(
    fc.property(changes, changes, (told, others) => {
      const { tier } = judge(told)
      assert.ok(judge([...told, ...others]).tier >= tier)
      const later = Object(planOf(told)).resource_changes.map((one: object) => ({ reason: 'x', resource_change: one }))
      assert.ok(judge(others, { deferred_changes: later }).tier >= tier)
    }),
  )
})

test('no module around a resource makes it more harmless', () => {
  const module = fc.constantFrom('module.a.', 'module.a["x.y"].', 'module.b[3].module.c["]"].', 'module.product.')
  fc.assert(
    fc.property(changes, module, (told, around) => {
      const nested = told.map((one) => ({ ...one, address: around + one.address }))
      assert.ok(judge(nested).tier >= judge(told).tier)
    }),
  )
})
