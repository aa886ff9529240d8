import type { DemandOf } from '../../../call/index.ts'
import { pricingSlot } from './pricing.ts'

/**
 * Bounds prompts that neither their bytes nor their route bound by the context windows in the prices: the largest of all endpoints that may respond,
 * if each is stated.
 */
export function withContexts(demandOf: DemandOf): DemandOf {
  return (call) => {
    const demand = demandOf(call)
    if (demand === null || demand.bounded || demand.openEnd !== null) return demand
    const prices = call.snapshot.get(pricingSlot)
    const contexts = [demand.priced, ...demand.otherPriced].map((one) => prices.model(one)?.contextTokens ?? null)
    if (contexts.includes(null)) return demand
    return { ...demand, bounded: true, inputTokens: Math.max(...contexts.map((context) => context ?? 0)) }
  }
}
