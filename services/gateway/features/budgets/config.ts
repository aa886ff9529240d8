import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

/** Budgets and prices (document 3, "Revocations, budgets, cost" and "Model routes"). */
export const budgetsBlock = {
  path: '',
  feature: 'budgets',
  built: true,
  schema: Type.Object({
    sessionBudgetUSD: Type.Number({
      default: 0,
      minimum: 0,
      description: 'Per-session limit in the currency of the prices; 0 means none.',
    }),
    pricingFile: Type.String({
      default: '',
      file: 'fails closed',
      description: 'Pricing table for cost, hot-reloaded; under a limit a model without a price is refused.',
    }),
  }),
} satisfies ConfigBlock
