import { readFile } from 'node:fs/promises'
import { decodePricing } from './pricing/decode.ts'

/** Applies when neither configuration nor prices name one. */
export const DEFAULT_CURRENCY = 'USD'

/**
 * Returns the currency of budgets (docs/spec/gateway.md, `budgetCurrency`) from keys of gateway.json, for programs that render budgets:
 * `budgetCurrency`, else the currency of the pricing file, else USD.
 */
export async function budgetCurrencyOf(keys: Readonly<Record<string, unknown>>): Promise<string> {
  const { budgetCurrency, pricingFile } = keys
  if (typeof budgetCurrency === 'string' && budgetCurrency !== '') return budgetCurrency
  if (typeof pricingFile !== 'string' || pricingFile === '') return DEFAULT_CURRENCY
  // An unusable file has no currency; the gateway reports the problem.
  const bytes = await readFile(pricingFile).catch(() => null)
  const decoded = bytes === null ? null : decodePricing(bytes)
  return decoded !== null && 'table' in decoded ? decoded.table.currency : DEFAULT_CURRENCY
}
