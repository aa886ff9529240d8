import {
  BATCH_PRICE,
  type Call,
  type DemandOf,
  type PricedModel,
  type Snapshots,
  type Usage,
} from '../../call/index.ts'
import { type Review, review } from '../../pipeline/stage.ts'
import { mediaCost, type UsedMedia } from './pricing/media.ts'
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

/** Returns the price of what a call for images or sound used by the prices of its pass, in micro-units; null: unknown. */
export function createMediaPrice(demandOf: DemandOf): (call: Call<'target'>, used: UsedMedia) => number | null {
  return (call, used) => {
    const demand = demandOf(call)
    const price = demand === null ? null : call.snapshot.get(pricingSlot).model(demand.priced)
    return price === null || !demand?.media ? null : mediaCost(price, demand.media, used)
  }
}

/** Returns the price of the usage of a request in a batch, by the prices in force, in micro-units; 0 if the model has no price. */
export function createBatchPrice(snapshots: Snapshots) {
  return (priced: PricedModel, options: readonly string[], usage: Usage): number => {
    const price = snapshots.current.get(pricingSlot).model(priced, [...options, BATCH_PRICE])
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
