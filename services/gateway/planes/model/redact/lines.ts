import type { Denial, Frame, FrameVerdict, RedactionScope, Redactor } from '../../../call/index.ts'
import { deny, isDenial } from '../../../call/index.ts'
import type { RunningReview } from '../../../pipeline/stage.ts'
import { redactMessage } from '../../wire/redact.ts'
import { ModelFrame } from '../frame.ts'

/** The parts of a line of results that hold or quote generated content. */
const WHERE: RedactionScope = { within: [['response'], ['result'], ['error']] }

/** Redacts the results of a batch, each line as a whole. */
export class LinesReview implements RunningReview {
  readonly #redactor: Redactor | Denial

  constructor(redactor: Redactor | Denial) {
    this.#redactor = redactor
  }

  frame(frame: Frame): FrameVerdict {
    const redactor = this.#redactor
    if (isDenial(redactor)) return redactor
    if (!(frame instanceof ModelFrame)) return deny('internal', 'a response came in a form that cannot be redacted')
    const { json } = frame
    // An error is a whole body.
    if (json === null || frame.role !== 'partial')
      return redactMessage(redactor, json ?? frame.raw, { within: [['error']] }, (redacted) => [
        ModelFrame.error(redacted),
      ])
    return redactMessage(redactor, json, WHERE, (redacted) => [redacted === json ? frame : ModelFrame.line(redacted)])
  }

  end(): FrameVerdict {
    return []
  }
}
