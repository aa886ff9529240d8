import type { Steps } from '@plat/core'
import { type Denial, deny, type TextRedactor } from '../../../call/index.ts'
import { stepless } from '../../../call/testing/steps.ts'

/** Takes `secret` out, holding back what may be its beginning; `FORBIDDEN` is refused. */
export class Pen implements TextRedactor {
  #held = ''

  push(piece: string): Steps<string | Denial> {
    return stepless(this.#passed(piece))
  }

  #passed(piece: string): string | Denial {
    const text = (this.#held + piece).replaceAll('secret', '[X]')
    let keep = Math.min(5, text.length)
    while (!'secret'.startsWith(text.slice(text.length - keep))) keep--
    this.#held = text.slice(text.length - keep)
    const passed = text.slice(0, text.length - keep)
    return passed.includes('FORBIDDEN') ? deny('dlp_denied', 'no') : passed
  }

  end(): string {
    const held = this.#held
    this.#held = ''
    return held
  }
}
