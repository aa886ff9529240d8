import type { Call, Denial, Redactor, Target } from '../../call/index.ts'
import type { Review, RunningReview } from '../../pipeline/stage.ts'

type Resolved = Call<'identity' | 'target'>

/** Returns the redactor for the replies of a call; null: nothing is redacted. A denial when the profile is not available. */
export type RedactorOf = (call: Resolved) => Redactor | Denial | null

/** Creates the review `redact` for targets of this kind. `open` returns how replies are read. */
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
