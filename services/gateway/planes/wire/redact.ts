import type { Call, Denial, Redactor, Target } from '../../call/index.ts'
import type { Review, RunningReview } from '../../pipeline/stage.ts'

type Resolved = Call<'identity' | 'target'>

/** What takes out of a reply what must not pass; null: all of it may. A denial stands for a profile that cannot be had. */
export type RedactorOf = (call: Resolved) => Redactor | Denial | null

/** The review `redact` of the plane that reaches targets of this kind. `open` says how its replies are read. */
export function createRedactReview(
  kind: Target['kind'],
  redactorOf: RedactorOf,
  open: (redactor: Redactor | Denial, call: Resolved) => RunningReview,
): Review<'identity' | 'target'> {
  return {
    name: 'redact',
    needs: ['identity', 'target'],
    open(call) {
      if (call.facts.target.kind !== kind) return null
      const redactor = redactorOf(call)
      return redactor === null ? null : open(redactor, call)
    },
  }
}
