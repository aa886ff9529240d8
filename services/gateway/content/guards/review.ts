import { type Call, type Frame, type FrameVerdict, isDenial } from '../../call/index.ts'
import { type Marking, type Review, type RunningReview, review } from '../../pipeline/stage.ts'
import type { Guard } from './guard.ts'
import type { Guards } from './guards.ts'
import type { GuardLabels } from './stage.ts'
import { textOf, textOfHosted, textOfMessage } from './texts.ts'

type Readers = Pick<Guards, 'none' | 'of' | 'judge'>

/** Classifies tool results. Each message of a stream waits for the guards, so that no flagged text is sent. */
export function createGuardReview(guards: Readers, brought: GuardLabels): Review<'identity' | 'target'> {
  return review({
    name: 'guard',
    needs: ['identity', 'target'],
    open(call) {
      if (guards.none) return null
      // The model's own text is not a tool result; findings of provider-hosted tools are.
      const isOwn = call.facts.target.kind === 'model' && call.facts.target.labels.taints.length === 0
      const reading = isOwn ? [] : guards.of(call, 'toolResult')
      const before = brought.get(call) ?? []
      return reading.length === 0 && before.length === 0 ? null : new Reading(guards, call, { reading, before })
    },
  })
}

class Reading implements RunningReview, Marking {
  readonly #guards: Readers
  readonly #call: Call<'identity' | 'target'>
  readonly #reading: readonly Guard[]
  readonly cleared: readonly string[] = []
  added: readonly string[]

  constructor(
    guards: Readers,
    call: Call<'identity' | 'target'>,
    { reading, before }: { readonly reading: readonly Guard[]; readonly before: readonly string[] },
  ) {
    this.#guards = guards
    this.#call = call
    this.#reading = reading
    this.added = before
  }

  get marking(): Marking {
    return this
  }

  frame(frame: Frame): FrameVerdict {
    const text = this.#reading.length === 0 ? '' : this.#textIn(frame)
    return text === '' ? [frame] : this.#read(frame, text)
  }

  end(): FrameVerdict {
    return []
  }

  #textIn(frame: Frame): string {
    if (this.#call.facts.target.kind === 'model') return textOfHosted(frame.value)
    // Output of code is not a JSON-RPC message, whatever its members are named.
    return textIn(frame, this.#call.operation === 'exec' ? textOf : textOfMessage)
  }

  async #read(frame: Frame, text: string): Promise<Awaited<FrameVerdict>> {
    const judged = await this.#guards.judge(this.#call, this.#reading, { text, target: 'toolResult' })
    if (isDenial(judged)) return judged
    this.added = [...this.added, ...judged]
    return [frame]
  }
}

/** Other content than JSON, such as an error page, is classified as a whole; a keep-alive has no text. */
function textIn({ value, raw, role }: Frame, textOfValue: (value: unknown) => string): string {
  if (value !== undefined || raw === null || role === 'progress') return textOfValue(value)
  return Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('utf8')
}
