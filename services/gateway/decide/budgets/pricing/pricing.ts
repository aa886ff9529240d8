import { followFile, missingFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import type { Slot, Snapshots } from '../../../call/index.ts'
import { decodePricing } from './decode.ts'
import { noPrices, type PriceTable } from './table.ts'

/** Slot of the prices in the snapshot. A call is settled by the prices that it was admitted with. */
export const pricingSlot: Slot<PriceTable> = { name: 'pricing', initial: noPrices }

export interface PricingOptions {
  readonly config: {
    /** Empty: no prices. */
    readonly pricingFile: string
    /** Empty: the currency of the prices. */
    readonly budgetCurrency: string
    readonly policyReloadSeconds: number
  }
  readonly snapshots: Snapshots
  readonly clock: Clock
  readonly log: Log
}

/** Reloads `pricingFile` every `policyReloadSeconds`. An invalid file leaves the previous prices in force. */
export function watchPricing({ config, snapshots, clock, log }: PricingOptions): {
  check(): Promise<void>
  stop(): void
} {
  const path = config.pricingFile
  if (path === '') return { check: async () => {}, stop: () => {} }
  const refuse = (problems: readonly string[]) => {
    const inForce = snapshots.current.get(pricingSlot)
    const meanwhile = inForce === noPrices ? 'nothing has a price' : 'the previous prices remain in force'
    log.error({ path, problems, priceId: inForce.id }, `pricingFile is refused: ${meanwhile}`)
  }
  return followFile({
    path,
    everySeconds: config.policyReloadSeconds,
    clock,
    decode: (bytes) => (bytes === null ? missingFile : decodePricing(bytes)),
    publish({ table }) {
      const { currency, id: priceId } = table
      if (config.budgetCurrency !== '' && currency !== config.budgetCurrency) {
        return refuse([`currency: ${currency}, but budgetCurrency is ${config.budgetCurrency}; nothing is converted`])
      }
      snapshots.publish(pricingSlot, table)
      log.info({ path, priceId, currency }, 'prices loaded')
    },
    refuse,
  })
}
