import type { Call, DemandOf, Usage } from '../../call/index.ts'
import { type Review, review } from '../../pipeline/stage.ts'
import { costOf } from './pricing/price.ts'
import { pricingSlot } from './pricing/pricing.ts'

/** Returns the price of a model call's usage by the prices of its pass, in micro-units; 0 if the model has no price. */
export function createPrice(demandOf: DemandOf): (call: Call<'target'>, usage: Usage) => number {
  return (call, usage) => {
    const demand = demandOf(call)
    const price = demand === null ? null : call.snapshot.get(pricingSlot).model(demand.priced, demand.options)
    return price === null ? 0 : costOf(price, usage)
  }
}

/** Adds the price of a tool call, if the tool has one. Does not inspect frames. */
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
