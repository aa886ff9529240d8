import { whenReady } from '@plat/core'
import type { Denial, TaintView } from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import type { Taints, Turn } from './taints.ts'

/** Labels at the start of a call. Tools clear only labels added before. */
export class LabelSnapshot implements TaintView {
  readonly labels: readonly string[]
  readonly turn: Turn

  constructor(labels: readonly string[], turn: Turn) {
    this.labels = labels
    this.turn = turn
  }
}

/**
 * Provides the taint labels of the caller's session to policies. A label that another call adds meanwhile does not apply: the caller
 * wrote this call before it read that response.
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
      const facts = (denial: Denial | null) => {
        if (denial !== null) return denial
        const seen = taints.seen(identity)
        return { taints: clears ? new LabelSnapshot(seen.labels, taints.turn) : seen }
      }
      return whenReady(taints.note(identity), facts)
    },
  })
}
