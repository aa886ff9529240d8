import { readFile } from 'node:fs/promises'
import { decodePricing } from './pricing/decode.ts'

/** Where neither the configuration nor the prices say. */
export const DEFAULT_CURRENCY = 'USD'

/**
 * What budgets are counted in (docs/spec/gateway.md, `budgetCurrency`), read off keys of gateway.json before a gateway runs: as they say, else as
 * their prices do, else USD. For whoever renders budgets.
 */
export async function budgetCurrencyOf(keys: Readonly<Record<string, unknown>>): Promise<string> {
  const { budgetCurrency, pricingFile } = keys
  if (typeof budgetCurrency === 'string' && budgetCurrency !== '') return budgetCurrency
  if (typeof pricingFile !== 'string' || pricingFile === '') return DEFAULT_CURRENCY
  // A file that cannot be used has no currency; that it cannot be used is told by the gateway.
  const bytes = await readFile(pricingFile).catch(() => null)
  const decoded = bytes === null ? null : decodePricing(bytes)
  return decoded !== null && 'table' in decoded ? decoded.table.currency : DEFAULT_CURRENCY
}
