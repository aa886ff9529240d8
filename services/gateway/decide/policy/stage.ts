import type { Clock } from '@plat/core'
import {
  type Call,
  type Decision,
  type Denial,
  deny,
  type Operation,
  type Slot,
  type Snapshots,
} from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import { noPolicies, type PolicySet } from './compile.ts'
import type { Rego } from './engines/rego.ts'
import { judge } from './judge.ts'
import { questionOf } from './policy-input.ts'

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

export interface PolicyStageOptions {
  readonly snapshots: Snapshots
  readonly clock: Clock
  /** Null: no engine beside the gateway is asked. */
  readonly rego?: Rego | null
  /** `plat_gateway_dryrun_decisions_total`: what a policy that is only tried out would have said of a call. */
  readonly tried?: (policy: string, would: string) => void
}

/**
 * Judges the call by the policies of its pass, and by the engine beside the gateway. While the call lasts it is judged again whenever other policies are
 * published; one that passed without an approval ends when it would need one now. The engine is asked once a pass.
 */
export function createPolicyStage({
  snapshots,
  clock,
  rego = null,
  tried = () => {},
}: PolicyStageOptions): Stage<'policy', 'identity' | 'target' | 'taints', 'decision'> {
  const admitted = (call: Call, decision: Decision) => {
    for (const { policy, action } of decision.wouldBe) tried(policy, action)
    return refusal(decision) ?? { decision: call.operation === 'mcp.answer' ? answered(decision) : decision }
  }
  return stage({
    name: 'policy',
    needs: ['identity', 'target', 'taints'],
    gives: ['decision'],
    skipped: { decision: BY_SCOPE },
    admit(call) {
      if (followsUnjudged(call)) return { decision: BY_SCOPE }
      const question = questionOf(call, clock.now())
      const decision = judge(call.snapshot.get(policySlot), question)
      if (rego === null) return admitted(call, decision)
      return rego.judge(question, decision).then((joined) => admitted(call, joined))
    },
    still(call: Call<'identity' | 'target' | 'taints' | 'decision'>) {
      if (snapshots.current === call.snapshot) return null
      const current = snapshots.current.get(policySlot)
      if (current === call.snapshot.get(policySlot)) return null
      if (followsUnjudged(call)) return null
      const decision = judge(current, questionOf(call, clock.now()))
      const stricter = decision.action === 'require_approval' && call.facts.decision.action === 'allow'
      return stricter && call.operation !== 'mcp.answer' ? denial(decision) : refusal(decision)
    },
  })
}

/** Operations that policies judge and that a server may ask something in. */
const JUDGED: ReadonlySet<Operation | null | undefined> = new Set<Operation>(['mcp.call', 'mcp.get'])

/** An answer to what a server asked where no policy is asked, such as in a stream that only listens. */
function followsUnjudged({ operation, parentOperation }: Call): boolean {
  return operation === 'mcp.answer' && !JUDGED.has(parentOperation)
}

/** Whoever had to approve the call that asks has done so: its answer needs no approval of its own. */
function answered(decision: Decision): Decision {
  return { ...decision, action: 'allow' }
}

/** What needs an approval goes on to the stage `approval`; without a grant from there the runner lets nothing pass. */
function refusal(decision: Decision): Denial | null {
  return decision.action === 'deny' ? denial(decision) : null
}

function denial(decision: Decision): Denial {
  const { reason, policy, rule, code } = decision
  return deny(code ?? 'policy_denied', reason, { policy, rule, decision })
}
