import { type Denial, deny, isDenial, unstored } from '../../call/index.ts'
import { type Stage, stage, type Verdict } from '../../pipeline/stage.ts'
import type { Approvals } from './approvals.ts'
import type { DecidedCall } from './decided-call.ts'
import { isFree } from './decided-call.ts'
import type { Repeats } from './grants/repeats.ts'

export type ApprovalStage = Stage<
  'approval',
  'identity' | 'target' | 'pin' | 'taints' | 'decision' | 'redacted',
  'approval'
>

/** The call needs no approval. */
const NOT_NEEDED = { approval: null } as const

/**
 * The stage `approval`: passes calls that policy allows; a call that needs an approval uses a grant once, repeats one that was approved for
 * its session, or waits. No other stage lets a decision other than allow continue.
 */
export function createApprovalStage(
  approvals: Approvals,
  repeats: Repeats,
  onFault: (error: unknown) => void,
): ApprovalStage {
  const judge = async (call: DecidedCall): Promise<Verdict<'approval'>> => {
    const used = call.pass === 2 ? await approvals.release(call) : null
    if (used === null && isFree(call)) return NOT_NEEDED
    const repeated = used === null ? await repeats.use(call) : null
    if (repeated !== null) return { approval: repeated }
    const answer = used ?? (await approvals.ask(call))
    if (isDenial(answer)) return answer
    if ('until' in answer) {
      repeats.noteQuestion(call, answer.approvalId)
      return answer
    }
    await repeats.begin(call, answer).catch(onFault)
    return { approval: answer }
  }
  const unavailable = (error: unknown): Denial => unstored(error, 'approvals cannot be stored now', onFault)
  return stage({
    name: 'approval',
    needs: ['identity', 'target', 'pin', 'taints', 'decision', 'redacted'],
    gives: ['approval'],
    skipped: NOT_NEEDED,
    admit(call) {
      const { action } = call.facts.decision
      if (action === 'deny') return deny('policy_denied', call.facts.decision.reason)
      return call.pass === 1 && isFree(call) ? NOT_NEEDED : judge(call).catch(unavailable)
    },
    settle({ id, facts: { approval } }, { forwarded }) {
      return approval === null || forwarded ? undefined : approvals.giveBack(approval, id)
    },
  })
}
