import { type Denial, deny, type Frame, type FrameVerdict, isDenial, type Redactor } from '../../call/index.ts'
import type { Review } from '../../pipeline/stage.ts'
import { createRedactReview, type RedactorOf } from '../wire/redact.ts'

/** The whole answer of a sandbox, strict JSON. */
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
      this.#value = JSON.parse(Buffer.from(this.raw).toString('utf8'))
      this.#parsed = true
    }
    return this.#value
  }
}

/** Takes out of a sandbox's answer what must not pass. Every text of it may hold what code has printed. */
export function createExecRedactReview(redactorOf: RedactorOf): Review<'identity' | 'target'> {
  return createRedactReview('builtin', redactorOf, (redactor) => ({
    frame: (frame) => redacted(redactor, frame),
    end: () => [],
  }))
}

function redacted(redactor: Redactor | Denial, frame: Frame): FrameVerdict {
  if (isDenial(redactor)) return redactor
  if (!(frame instanceof ExecFrame)) return deny('internal', 'an answer came in a form that cannot be redacted')
  const told = redactor.json(frame.raw, {})
  if (isDenial(told)) return told
  return [told === frame.raw ? frame : new ExecFrame(frame.role, told)]
}
