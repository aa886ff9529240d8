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
 * published; one that passed without an approval ends when it would need one now.
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
      if (current === call.snapshot.get(policySlot)) return null
      const decision = judge(current, questionOf(call, clock.now()))
      return decision.action === 'require_approval' && call.facts.decision.action === 'allow'
        ? denial(decision)
        : refusal(decision)
    },
  })
}

/** What needs an approval goes on to the stage `approval`; without a grant from there the runner lets nothing pass. */
function refusal(decision: Decision): Denial | null {
  return decision.action === 'deny' ? denial(decision) : null
}

function denial({ reason, policy, rule }: Decision): Denial {
  return deny('policy_denied', reason, { policy, rule })
}
