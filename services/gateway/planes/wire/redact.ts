import { runAtOnce, runInSlices, type Steps, whenReady } from '@plat/core'
import {
  type Call,
  type Denial,
  type FrameVerdict,
  isDenial,
  type RedactionScope,
  type Redactor,
  type Target,
} from '../../call/index.ts'
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

/** Longest message that is redacted in one stretch of the event loop, in bytes. */
const AT_ONCE_BYTES = 32 * 1024

/** Runs steps over a message of `bytes` bytes, of a long one in slices. */
export function inSteps<T>(steps: Steps<T>, bytes: number): T | Promise<T> {
  return bytes <= AT_ONCE_BYTES ? runAtOnce(steps) : runInSlices(steps)
}

/** Redacts a whole message, a long one in slices. `pass` returns the frames of the redacted one. */
export function redactMessage(
  redactor: Redactor,
  json: Uint8Array,
  where: RedactionScope,
  pass: (redacted: Uint8Array) => Verdict,
): FrameVerdict {
  const verdict = (redacted: Uint8Array | Denial) => (isDenial(redacted) ? redacted : pass(redacted))
  return whenReady(redactor.message(json, where), verdict)
}

type Verdict = Exclude<FrameVerdict, Promise<unknown>>
