import type { Call, DemandOf, ModelDemand, PricedModel } from '../../../call/index.ts'
import { mediaAtMost } from './media.ts'
import { costAtMost, type ModelPrice } from './price.ts'
import { pricingSlot } from './pricing.ts'
import type { PriceTable } from './table.ts'

/** Returns the prices of the endpoints that may serve a call, most expensive for this call first; null if none has a price. */
export function mostExpensiveFirst(
  table: Pick<PriceTable, 'model'>,
  demand: ModelDemand,
  maxTokens: number,
): readonly [ModelPrice, ...ModelPrice[]] | null {
  const only = table.model(demand.priced, demand.options)
  if (demand.otherPriced.length === 0) return only === null ? null : [only]
  const cost = (price: ModelPrice) =>
    costAtMost(price, demand.inputTokens, maxTokens * demand.choices) ?? Number.POSITIVE_INFINITY
  const [first, ...rest] = [only, ...demand.otherPriced.map((one) => table.model(one, demand.options))]
    .filter((price) => price !== null)
    .sort((one, other) => compare(cost(other), cost(one)))
  return first === undefined ? null : [first, ...rest]
}

/** Without subtraction, which is NaN for two infinities. */
function compare(one: number, other: number): number {
  return one === other ? 0 : one < other ? -1 : 1
}

/** Returns whether a call's hold covers the price of an endpoint. Always true for a call without a money hold. */
export function createAffords(demandOf: DemandOf) {
  return (call: Call<'target' | 'hold'>, priced: PricedModel): boolean => {
    const held = call.facts.hold?.items.find(({ unit }) => unit === 'micros')
    if (held === undefined) return true
    const demand = demandOf(call)
    const price = demand === null ? null : call.snapshot.get(pricingSlot).model(priced, demand.options)
    if (demand === null || price === null) return false
    const { media } = demand
    const cost =
      media !== null
        ? mediaAtMost(price, media)
        : costAtMost(price, demand.inputTokens, (demand.maxTokens ?? 0) * demand.choices)
    return cost !== null && cost <= held.amount
  }
}
