import type { ConfigBlock } from '@plat/config'
import Type from 'typebox'

/** Budgets (document 3): nothing of it is built; the key of core rule 8 has its range all the same. */
export const budgetsBlock = {
  path: '',
  feature: 'budgets',
  built: true,
  schema: Type.Object({
    sessionBudgetUSD: Type.Number({
      default: 0,
      minimum: 0,
      built: false,
      description: 'Per-session limit in US dollars; 0 means none.',
    }),
  }),
} satisfies ConfigBlock
