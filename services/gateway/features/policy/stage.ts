import type { Clock } from '@plat/core'
import { type Call, type Decision, type Denial, deny, type Slot, type Snapshots } from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import { noPolicies, type PolicySet } from './compile.ts'
import { judge } from './judge.ts'
import { questionOf } from './question.ts'

/** Where the policies stand in the snapshot. */
export const policySlot: Slot<PolicySet> = { name: 'policy', initial: noPolicies }

/** The decision where a row of the matrix asks no policy: the scope was enough. */
const BY_SCOPE: Decision = {
  action: 'allow',
  policy: null,
  rule: null,
  reason: 'scope',
  revision: '',
  engines: [],
  wouldBe: [],
  rates: [],
}

/**
 * Judges the call by the policies of its pass. While the call lasts it is judged again whenever other policies are
 * published.
 */
export function createPolicyStage(
  snapshots: Snapshots,
  clock: Clock,
): Stage<'policy', 'identity' | 'target', 'decision'> {
  return stage({
    name: 'policy',
    needs: ['identity', 'target'],
    gives: ['decision'],
    skipped: { decision: BY_SCOPE },
    admit(call) {
      const decision = judge(call.snapshot.get(policySlot), questionOf(call, clock.now()))
      return refusal(decision) ?? { decision }
    },
    still(call: Call<'identity' | 'target' | 'decision'>) {
      const current = snapshots.current.get(policySlot)
      return current === call.snapshot.get(policySlot) ? null : refusal(judge(current, questionOf(call, clock.now())))
    },
  })
}

/** Until approvals are built, whatever is not an allow is refused: nobody could grant it. */
function refusal(decision: Decision): Denial | null {
  if (decision.action === 'allow') return null
  return deny('policy_denied', decision.reason, { policy: decision.policy, rule: decision.rule })
}
