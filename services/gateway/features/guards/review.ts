import { type Call, type Frame, isDenial, type Passed } from '../../call/index.ts'
import { type Marking, type Review, type Running, review } from '../../pipeline/stage.ts'
import type { Guard } from './guard.ts'
import type { Guards } from './guards.ts'
import type { Brought } from './stage.ts'
import { textOf, textOfMessage } from './texts.ts'

type Readers = Pick<Guards, 'none' | 'of' | 'judge'>

/** Has guards read what tools answer. Each message of a stream waits for them, so nothing bad leaves before it is known to be. */
export function createGuardReview(guards: Readers, brought: Brought): Review<'identity' | 'target'> {
  return review({
    name: 'guard',
    needs: ['identity', 'target'],
    open(call) {
      if (guards.none) return null
      const reading = call.facts.target.kind === 'model' ? [] : guards.of(call, 'toolResult')
      const before = brought.get(call) ?? []
      return reading.length === 0 && before.length === 0 ? null : new Reading(guards, call, { reading, before })
    },
  })
}

class Reading implements Running, Marking {
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

  frame(frame: Frame): Passed {
    const text =
      this.#reading.length === 0 ? '' : textIn(frame, this.#call.operation === 'exec' ? textOf : textOfMessage)
    return text === '' ? [frame] : this.#read(frame, text)
  }

  end(): Passed {
    return []
  }

  async #read(frame: Frame, text: string): Promise<Awaited<Passed>> {
    const judged = await this.#guards.judge(this.#call, this.#reading, { text, target: 'toolResult' })
    if (isDenial(judged)) return judged
    this.added = [...this.added, ...judged]
    return [frame]
  }
}

/** What code puts out is no message of JSON-RPC, whatever its members are named. Of what is no JSON, such as the page of an error, whatever arrives; a sign of life has none. */
function textIn({ value, raw, role }: Frame, textOfValue: (value: unknown) => string): string {
  if (value !== undefined || raw === null || role === 'progress') return textOfValue(value)
  return Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('utf8')
}
