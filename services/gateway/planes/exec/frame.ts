import { parseChecked } from '@plat/core'
import { type Denial, deny, type Frame, type FrameVerdict, isDenial, type Redactor } from '../../call/index.ts'
import type { Review } from '../../pipeline/stage.ts'
import { createRedactReview, type RedactorOf, redactMessage } from '../wire/redact.ts'

/** The whole response of a sandbox, strict JSON. */
export class ExecFrame implements Frame {
  readonly role: 'final' | 'error'
  readonly raw: Uint8Array
  #value: unknown
  #parsed = false

  constructor(role: 'final' | 'error', raw: Uint8Array) {
    this.role = role
    this.raw = raw
  }

  get value(): unknown {
    if (!this.#parsed) {
      this.#value = parseChecked(Buffer.from(this.raw).toString('utf8'))
      this.#parsed = true
    }
    return this.#value
  }
}

/** Redacts the response of a sandbox. Any string in it may contain output of the code. */
export function createExecRedactReview(redactorOf: RedactorOf): Review<'identity' | 'target'> {
  return createRedactReview('builtin', redactorOf, (redactor) => ({
    frame: (frame) => redacted(redactor, frame),
    end: () => [],
  }))
}

function redacted(redactor: Redactor | Denial, frame: Frame): FrameVerdict {
  if (isDenial(redactor)) return redactor
  if (!(frame instanceof ExecFrame)) return deny('internal', 'a response has a form that cannot be redacted')
  return redactMessage(redactor, frame.raw, {}, (json) => [
    json === frame.raw ? frame : new ExecFrame(frame.role, json),
  ])
}
