import { watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import type { Slot, Snapshots } from '../../../call/index.ts'
import { decodePricing } from './decode.ts'
import { noPrices, type PriceTable } from './table.ts'

/** Where the prices stand in the snapshot: a call is settled by those that it was admitted by. */
export const pricingSlot: Slot<PriceTable> = { name: 'pricing', initial: noPrices }

export interface PricingOptions {
  readonly config: {
    /** Empty: nothing has a price. */
    readonly pricingFile: string
    /** Empty: what the prices are in. */
    readonly budgetCurrency: string
    readonly policyReloadSeconds: number
  }
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
}

/** Prices of `pricingFile`, read again every `policyReloadSeconds`; a bad file leaves the good one in force. */
export function watchPricing({ config, snapshots, clock, log }: PricingOptions): {
  check(): Promise<void>
  stop(): void
} {
  const path = config.pricingFile
  if (path === '') return { check: async () => {}, stop: () => {} }
  const failed = (problems: readonly string[]) => {
    const inForce = snapshots.current.get(pricingSlot)
    const meanwhile = inForce === noPrices ? 'nothing has a price' : 'the prices read before stay in force'
    log.error({ path, problems, priceId: inForce.id }, `pricingFile is refused: ${meanwhile}`)
  }
  return watchFile({
    path,
    everyMs: config.policyReloadSeconds * 1000,
    clock,
    onBytes(bytes) {
      const decoded = bytes === null ? { problems: ['no such file'] } : decodePricing(bytes)
      if ('problems' in decoded) return failed(decoded.problems)
      const { currency } = decoded.table
      if (config.budgetCurrency !== '' && currency !== config.budgetCurrency) {
        return failed([`currency: ${currency}, but budgetCurrency is ${config.budgetCurrency}; nothing is converted`])
      }
      snapshots.publish(pricingSlot, decoded.table)
      log.info({ path, priceId: decoded.table.id, currency: decoded.table.currency }, 'prices loaded')
    },
    onError: (error) => failed([error instanceof Error ? error.message : 'cannot be read']),
  })
}
