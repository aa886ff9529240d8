import { isPromise, whenReady } from '@plat/core'
import type { Call, Denial, Frame, FrameVerdict, Snapshot } from '../../call/index.ts'
import { type Marking, type Review, type RunningReview, review } from '../../pipeline/stage.ts'
import { LabelSnapshot } from './stage.ts'
import type { Taints } from './taints.ts'

export interface MarkOptions {
  readonly taints: Taints
  /** Whether any tool clears labels. */
  readonly clears: (snapshot: Snapshot) => boolean
}

type MarkedCall = Call<'identity' | 'target' | 'taints'>

/**
 * Adds the labels of called tools to the session (docs/spec/crds.md, `toolLabels`), and clears those that tools clear. A label is
 * durable before the first frame that brings it is sent; labels are cleared after the whole response of a successful call was written.
 */
export function createMark({ taints, clears }: MarkOptions): Review<'identity' | 'target' | 'taints'> {
  return review({
    name: 'mark',
    needs: ['identity', 'target', 'taints'],
    open(call) {
      const { labels } = call.facts.target
      const mayClear = labels.clearTaints.length > 0
      if (!mayClear && labels.taints.length === 0) return null
      // If no tool clears labels, the turn in which a label was added is irrelevant.
      if (!mayClear && !clears(call.snapshot) && taints.has(call.facts.identity, labels.taints)) return null
      return new Marker(taints, call)
    },
  })
}

class Marker implements RunningReview, Marking {
  readonly #taints: Taints
  readonly #call: MarkedCall
  #begun = false
  #succeeded = false
  added: readonly string[] = []
  cleared: readonly string[] = []

  constructor(taints: Taints, call: MarkedCall) {
    this.#taints = taints
    this.#call = call
  }

  get marking(): Marking {
    return this
  }

  beforeTunnel(): null | Denial | Promise<null | Denial> {
    return this.#add()
  }

  frame(frame: Frame): FrameVerdict {
    const { target } = this.#call.facts
    if (frame.role === 'final' && target.labels.clearTaints.length > 0) this.#succeeded = isSuccess(frame.value)
    if (this.#begun) return [frame]
    this.#begun = true
    return whenReady(this.#add(), orFrame, frame)
  }

  end(): FrameVerdict {
    return []
  }

  async sent(): Promise<void> {
    const { identity, target, taints } = this.#call.facts
    if (!this.#succeeded || !(taints instanceof LabelSnapshot)) return
    this.cleared = await this.#taints.clear(identity, { wanted: target.labels.clearTaints, turn: taints.turn })
  }

  /** Adds the labels of the target to the session. Null: done durably. */
  #add(): null | Denial | Promise<null | Denial> {
    const { identity, target } = this.#call.facts
    const brought = target.labels.taints
    if (brought.length === 0) return null
    const before = new Set(this.#taints.labelsOf(identity))
    const adding = this.#taints.add(identity, brought)
    if (!isPromise(adding)) return adding
    return adding.then((denial) => {
      if (denial === null) this.added = brought.filter((label) => !before.has(label))
      return denial
    })
  }
}

function orFrame(denial: Denial | null, frame: Frame): Denial | readonly Frame[] {
  return denial ?? [frame]
}

/** Whether a response has no protocol or tool error and is not another question. */
function isSuccess(answer: unknown): boolean {
  if (typeof answer !== 'object' || answer === null || !('result' in answer)) return false
  const { result } = answer
  if (typeof result !== 'object' || result === null) return false
  if ('isError' in result && result.isError === true) return false
  return !('resultType' in result) || result.resultType === 'complete'
}
