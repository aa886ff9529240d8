import { GlobTable } from '@plat/core'
import { type ModelPrice, withOptions } from './price.ts'
import type { SandboxPrice } from './sandbox.ts'

/** All prices at one moment. */
export class PriceTable {
  /** `priceId` of outcomes; empty: no prices were read. */
  readonly id: string
  /** ISO 4217. */
  readonly currency: string
  /** Null: what sandboxes use costs nothing. */
  readonly sandbox: SandboxPrice | null
  readonly #models: GlobTable<ModelPrice>
  readonly #tools: GlobTable<number>

  constructor(from: {
    readonly id: string
    readonly currency: string
    readonly models: readonly (readonly [key: string, price: ModelPrice])[]
    readonly tools: readonly (readonly [key: string, perCall: number])[]
    readonly sandbox?: SandboxPrice | null
  }) {
    this.id = from.id
    this.currency = from.currency
    this.sandbox = from.sandbox ?? null
    this.#models = new GlobTable(from.models)
    this.#tools = new GlobTable(from.tools)
  }

  /** By `<provider>/<model>`, with what a caller selects beyond the plain prices; null: no price is known. */
  model(key: string, options: readonly string[] = []): ModelPrice | null {
    const price = this.#models.find(key)
    return price === null || options.length === 0 ? price : withOptions(price, options)
  }

  /** Micro-units for one call of `<ns>/<server>/<tool>`; 0 without a price. */
  tool(key: string): number {
    return this.#tools.find(key) ?? 0
  }
}

/** What stands before a file was read: nothing has a price. */
export const noPrices = new PriceTable({ id: '', currency: 'USD', models: [], tools: [] })
