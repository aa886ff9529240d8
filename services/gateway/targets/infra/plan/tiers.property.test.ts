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

async function judge(changes: readonly PlanChange[], more: object = {}): Promise<TierResult> {
  const plan = await readPlan(JSON.parse(JSON.stringify(planOf(changes, more))))
  return typeof plan === 'string' ? assert.fail(plan) : tiers.judge(plan)
}

test('the order of changes in a plan does not affect its tier', async () => {
  const withShuffled = changes.chain((changes) =>
    fc.tuple(fc.constant(changes), fc.shuffledSubarray(changes, { minLength: changes.length })),
  )
  await fc.assert(
    fc.asyncProperty(withShuffled, async ([changes, shuffled]) => {
      const [one, other] = [await judge(changes), await judge(shuffled)]
      assert.deepEqual([one.tier, one.resources, one.causes], [other.tier, other.resources, other.causes])
    }),
  )
})

test('the order of actions in a change does not affect its tier', async () => {
  await fc.assert(
    fc.asyncProperty(changes, async (changes) => {
      const turned = changes.map(({ actions, ...rest }) => ({ ...rest, actions: actions.toReversed() }))
      assert.equal((await judge(turned)).tier, (await judge(changes)).tier)
    }),
  )
})

test('other changes, and the list of a change, never lower its tier', async () => {
  await fc.assert(
    fc.asyncProperty(changes, changes, async (changes, others) => {
      const { tier } = await judge(changes)
      assert.ok((await judge([...changes, ...others])).tier >= tier)
      const later = Object(planOf(changes)).resource_changes.map((one: object) => ({
        reason: 'x',
        resource_change: one,
      }))
      assert.ok((await judge(others, { deferred_changes: later })).tier >= tier)
    }),
  )
})

test('no enclosing module lowers the tier of a resource', async () => {
  const module = fc.constantFrom('module.a.', 'module.a["x.y"].', 'module.b[3].module.c["]"].', 'module.product.')
  await fc.assert(
    fc.asyncProperty(changes, module, async (changes, around) => {
      const nested = changes.map((one) => ({ ...one, address: around + one.address }))
      assert.ok((await judge(nested)).tier >= (await judge(changes)).tier)
    }),
  )
})
