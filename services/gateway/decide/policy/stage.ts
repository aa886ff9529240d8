import type { Clock } from '@plat/core'
import {
  type Call,
  type Decision,
  type Denial,
  deny,
  type Operation,
  type Slot,
  type Snapshots,
  scopeDecision,
} from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import { noPolicies, type PolicySet } from './compile.ts'
import type { Rego } from './engines/rego.ts'
import { judge } from './judge.ts'
import { policyInputOf } from './policy-input.ts'

export const policySlot: Slot<PolicySet> = { name: 'policy', initial: noPolicies }

export interface PolicyStageOptions {
  readonly snapshots: Snapshots
  readonly clock: Clock
  /** Null: no external engine. */
  readonly rego?: Rego | null
  /** `plat_gateway_dryrun_decisions_total`: verdicts of policies in dryRun. */
  readonly tried?: (policy: string, would: string) => void
  /** Called once for each call with its decision. */
  readonly decided?: (decision: Decision) => void
}

/**
 * Evaluates the call by the policies of its pass and by the external engine. During the call it is evaluated again whenever new policies
 * are published; a call that passed without an approval ends if it would now need one. The external engine gets one request per pass.
 */
export function createPolicyStage({
  snapshots,
  clock,
  rego = null,
  tried = () => {},
  decided = () => {},
}: PolicyStageOptions): Stage<'policy', 'identity' | 'target' | 'taints', 'decision'> {
  const admitted = (call: Call, decision: Decision) => {
    for (const { policy, action } of decision.wouldBe) tried(policy, action)
    if (call.pass === 1) decided(decision)
    return refusal(decision) ?? { decision: follows(call) ? asEvaluated(decision) : decision }
  }
  return stage({
    name: 'policy',
    needs: ['identity', 'target', 'taints'],
    gives: ['decision'],
    skipped: { decision: scopeDecision },
    admit(call) {
      if (followsUnjudged(call)) return { decision: scopeDecision }
      const question = policyInputOf(call, clock.now())
      const decision = judge(call.snapshot.get(policySlot), question)
      if (rego === null) return admitted(call, decision)
      return rego.judge(question, decision).then((joined) => admitted(call, joined))
    },
    still(call: Call<'identity' | 'target' | 'taints' | 'decision'>) {
      if (snapshots.current === call.snapshot) return null
      const current = snapshots.current.get(policySlot)
      if (current === call.snapshot.get(policySlot)) return null
      if (followsUnjudged(call)) return null
      const decision = judge(current, policyInputOf(call, clock.now()))
      const stricter = decision.action === 'require_approval' && call.facts.decision.action === 'allow'
      return stricter && !follows(call) ? denial(decision) : refusal(decision)
    },
  })
}

/** Operations evaluated by policies in which a server may send requests. */
const JUDGED: ReadonlySet<Operation | null | undefined> = new Set<Operation>(['mcp.call', 'mcp.get', 'mcp.task'])

/** A reply to a server request where no policy applies, such as in a listening stream. */
function followsUnjudged({ operation, parentOperation }: Call): boolean {
  return operation === 'mcp.answer' && !JUDGED.has(parentOperation)
}

/** Returns true for messages that belong to a call which was approved if necessary: replies to the server, and requests for its task. */
function follows({ operation }: Call): boolean {
  return operation === 'mcp.answer' || operation === 'mcp.task'
}

/** The call was approved: what belongs to it needs no separate approval. */
function asEvaluated(decision: Decision): Decision {
  return { ...decision, action: 'allow' }
}

/** Calls that need an approval continue to the stage `approval`; without a grant the runner refuses them. */
function refusal(decision: Decision): Denial | null {
  return decision.action === 'deny' ? denial(decision) : null
}

function denial(decision: Decision): Denial {
  const { reason, policy, rule, code } = decision
  return deny(code ?? 'policy_denied', reason, { policy, rule, decision })
}
