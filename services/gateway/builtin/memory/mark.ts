import type { Call, CallSignal, Denial, Frame, FrameVerdict, Identity } from '../../call/index.ts'
import { type Marking, type Review, type RunningReview, review } from '../../pipeline/stage.ts'

/** Taint labels of sessions. */
export interface Labels {
  labelsOf(identity: Identity): readonly string[]
  add(identity: Identity, labels: readonly string[]): null | Denial | Promise<null | Denial>
}

/** Labels of responses, by the abort signal of the call. */
export type LabelsBySignal = WeakMap<CallSignal, ReadonlySet<string>>

type MarkedCall = Call<'identity' | 'target'>

/** Adds the labels of returned items to the session, durably before the response is sent. */
export function createMemoryMark(
  labels: Labels,
  brought: LabelsBySignal,
  server: string,
): Review<'identity' | 'target'> {
  return review({
    name: 'mark',
    needs: ['identity', 'target'],
    open: (call) => (call.facts.target.key === server ? new MemoryMark(labels, brought, call) : null),
  })
}

class MemoryMark implements RunningReview, Marking {
  readonly #labels: Labels
  readonly #brought: LabelsBySignal
  readonly #call: MarkedCall
  readonly cleared: readonly string[] = []
  added: readonly string[] = []

  constructor(labels: Labels, brought: LabelsBySignal, call: MarkedCall) {
    this.#labels = labels
    this.#brought = brought
    this.#call = call
  }

  get marking(): Marking {
    return this
  }

  frame(frame: Frame): FrameVerdict {
    const brings = [...(this.#brought.get(this.#call.signal) ?? [])]
    return brings.length === 0 ? [frame] : this.#mark(brings, frame)
  }

  end(): FrameVerdict {
    return []
  }

  async #mark(brings: readonly string[], frame: Frame): Promise<readonly Frame[] | Denial> {
    const { identity } = this.#call.facts
    const before = new Set(this.#labels.labelsOf(identity))
    const denial = await this.#labels.add(identity, brings)
    if (denial !== null) return denial
    this.added = brings.filter((label) => !before.has(label))
    return [frame]
  }
}
