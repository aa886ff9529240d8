import type { TaintView } from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import type { Taints, Turn } from './taints.ts'

/** The labels that a call began with, and when that was: what its tool clears, it clears of these. */
export class LabelSnapshot implements TaintView {
  readonly labels: readonly string[]
  readonly turn: Turn

  constructor(labels: readonly string[], turn: Turn) {
    this.labels = labels
    this.turn = turn
  }
}

/**
 * Tells policies the taint labels of the caller's session. A label that another call of the session brings meanwhile changes nothing for
 * this one: what it says was said before that answer was read.
 */
export function createTaintStage(taints: Taints): Stage<'taints', 'identity' | 'target', 'taints'> {
  return stage({
    name: 'taints',
    needs: ['identity', 'target'],
    gives: ['taints'],
    skipped: { taints: { labels: [] } },
    admit(call) {
      const { identity, target } = call.facts
      const clears = target.labels.clearTaints.length > 0
      const facts = () => {
        const seen = taints.seen(identity)
        return { taints: clears ? new LabelSnapshot(seen.labels, taints.turn) : seen }
      }
      const noting = taints.note(identity)
      if (noting instanceof Promise) return noting.then((denial) => denial ?? facts())
      return noting ?? facts()
    },
  })
}
