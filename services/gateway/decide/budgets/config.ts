import { defineBlock, type RuleOf } from '@plat/config'
import Type from 'typebox'

const schema = Type.Object({
  sessionBudgetUSD: Type.Number({
    default: 0,
    minimum: 0,
    description: 'Per-session limit in the currency of the prices; 0: none.',
  }),
  pricingFile: Type.String({
    default: '',
    file: 'fails closed',
    description:
      'Pricing table for cost, hot-reloaded; keys `[llm/<route>#][<upstream>#]<provider>/<model>`; under a limit a model without a price is refused.',
  }),
  budgetsFile: Type.String({
    default: '',
    file: 'fails closed',
    description: 'Budgets rendered from BudgetPolicy and `Agent.spec.budget`, hot-reloaded.',
  }),
  budgetTimezone: Type.String({ default: 'UTC', description: 'IANA zone of day and month windows.' }),
  budgetCurrency: Type.String({
    default: '',
    pattern: '^(?:[A-Z]{3})?$',
    description: 'ISO 4217; default the currency of the prices, else USD; budgets in another are rejected.',
  }),
  finopsStatePath: Type.String({
    default: '',
    description: 'Metered totals, rebuilt from the ledger; default `<auditPath>.finops.json`.',
  }),
  finopsSaveSeconds: Type.Integer({ default: 10, minimum: 1, description: 'Save cadence.' }),
})

/** Days and months need a time zone. */
const zoneIsKnown: RuleOf<typeof schema> = ({ budgetTimezone: zone }) =>
  zone === undefined || isZone(zone)
    ? []
    : [{ path: 'budgetTimezone', message: 'must be an IANA zone such as Europe/Berlin', severity: 'error' }]

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false
  }
}

/** Budgets and prices (docs/spec/gateway.md, "Revocations, budgets, cost" and "Model routes"). */
export const budgetsBlock = defineBlock({
  path: '',
  feature: 'budgets',
  schema,
  rules: [zoneIsKnown],
})
