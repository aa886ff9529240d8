import type { Call } from '../../../call/index.ts'
import type { DemandOf, ModelDemand, PricedModel } from '../demand.ts'
import { costAtMost, type ModelPrice } from './price.ts'
import { pricingSlot } from './pricing.ts'
import type { PriceTable } from './table.ts'

/** The prices of the endpoints that may answer a call, the one that costs most for it first; null: none has a price. */
export function dearestFirst(
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

/** Without a difference, which two infinities do not have. */
function compare(one: number, other: number): number {
  return one === other ? 0 : one < other ? -1 : 1
}

/** Whether what is held for a call covers it at the price of an endpoint. A call that holds no money may go anywhere. */
export function createAffords(demandOf: DemandOf) {
  return (call: Call<'target' | 'hold'>, priced: PricedModel): boolean => {
    const held = call.facts.hold?.items.find(({ unit }) => unit === 'micros')
    if (held === undefined) return true
    const demand = demandOf(call)
    const price = demand === null ? null : call.snapshot.get(pricingSlot).model(priced, demand.options)
    if (demand === null || price === null) return false
    const cost = costAtMost(price, demand.inputTokens, (demand.maxTokens ?? 0) * demand.choices)
    return cost !== null && cost <= held.amount
  }
}
