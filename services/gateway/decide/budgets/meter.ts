import type { Call, Usage } from '../../call/index.ts'
import { type Review, review } from '../../pipeline/stage.ts'
import type { DemandOf } from './demand.ts'
import { costOf } from './pricing/price.ts'
import { pricingSlot } from './pricing/pricing.ts'

/** Prices what a model call used by the prices of its pass, in micro-units; 0 where the model has no price. */
export function createPrice(demandOf: DemandOf): (call: Call<'target'>, usage: Usage) => number {
  return (call, usage) => {
    const demand = demandOf(call)
    const price = demand === null ? null : call.snapshot.get(pricingSlot).model(demand.priced, demand.options)
    return price === null ? 0 : costOf(price, usage)
  }
}

/** Says what the call of a tool costs, where the tool has a price. It looks at no frame. */
export function createToolMeter(): Review<'target'> {
  return review({
    name: 'meter',
    needs: ['target'],
    open(call) {
      const { kind, key, tool } = call.facts.target
      const costMicros = kind === 'model' || tool === null ? 0 : call.snapshot.get(pricingSlot).tool(`${key}/${tool}`)
      if (costMicros === 0) return null
      return {
        frame: (frame) => [frame],
        end: () => [],
        tally: () => ({ usage: null, usageSource: 'none', costMicros }),
      }
    },
  })
}
