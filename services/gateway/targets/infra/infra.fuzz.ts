import assert from 'node:assert/strict'
import fc from 'fast-check'
import { fuzzTarget, near } from '../../../../test/fuzz/target.ts'
import { readPlan, withoutKeys } from './plan/plan.ts'
import { Tiers } from './plan/tiers.ts'
import { planResponse, previewOf, reasonOf } from './results.ts'
import { change, planOf, USUAL_TIERS } from './testing/plans.ts'

const tiers = new Tiers({ ...USUAL_TIERS, addProtectedAddresses: ['aws_instance.gate'] })

const address = near(['module.a["x\\".y"].module.b[0].aws_instance.gate["k]"]', 'aws_instance.gate', 'module..[[]].x'])

const anything = fc.record(
  {
    format_version: fc.constantFrom('1.2', '1.0', 2, null),
    errored: fc.anything(),
    resource_changes: fc.oneof(fc.anything(), fc.array(fc.oneof(fc.anything(), fc.constant(change({}))))),
    deferred_changes: fc.oneof(fc.anything(), fc.array(fc.record({ resource_change: fc.anything() }))),
    action_invocations: fc.anything(),
    configuration: fc.oneof(fc.anything(), fc.record({ root_module: fc.anything() })),
  },
  { requiredKeys: ['format_version'] },
)

/** Any plan is evaluated or refused with a reason, and a protected address is recognized in any notation. */
export const target = fuzzTarget('gateway: infrastructure plans', {
  'a plan is evaluated or refused': fc.asyncProperty(anything, async (value) => {
    const plan = await readPlan(value)
    if (typeof plan === 'string') return void assert.notEqual(plan, '')
    const judgement = await tiers.judge(plan)
    assert.ok(judgement.tier >= 0 && judgement.tier <= 4 && judgement.resources >= 0)
    assert.ok(Buffer.byteLength(reasonOf(judgement)) < 1_024)
    JSON.stringify(planResponse(judgement))
    assert.equal(typeof previewOf(judgement), 'string')
  }),
  'any address can be parsed': fc.asyncProperty(address, async (text) => {
    assert.ok(withoutKeys(text).length <= text.length)
    const plan = await readPlan(
      planOf([{ address: `module.x["${text.replaceAll(/[\\"]/g, '')}"].aws_instance.gate`, actions: ['update'] }]),
    )
    if (typeof plan !== 'string') assert.equal((await tiers.judge(plan)).tier, 4)
  }),
})
