import { GlobTable } from '@plat/core'
import type { PricedModel } from '../demand.ts'
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
  /** Keys of the prices of models. */
  readonly modelKeys: readonly string[]
  readonly #models: GlobTable<ModelPrice>
  /** Whether any price is for a route or an upstream alone. */
  readonly #isScoped: boolean
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
    this.modelKeys = from.models.map(([key]) => key)
    this.#models = new GlobTable(from.models)
    this.#isScoped = this.modelKeys.some((key) => key.includes('#'))
    this.#tools = new GlobTable(from.tools)
  }

  /**
   * The price of a model at an endpoint, with what a caller selects beyond the plain prices; null when no price is known. A price for the
   * endpoint's route or upstream comes before one for the model alone.
   */
  model(priced: PricedModel, options: readonly string[] = []): ModelPrice | null {
    const price = this.#find(priced)
    return price === null || options.length === 0 ? price : withOptions(price, options)
  }

  #find({ key, scopes }: PricedModel): ModelPrice | null {
    for (const scope of this.#isScoped ? scopes : []) {
      const price = this.#models.find(scope + key)
      if (price !== null) return price
    }
    return this.#models.find(key)
  }

  /** Micro-units for one call of `<ns>/<server>/<tool>`; 0 without a price. */
  tool(key: string): number {
    return this.#tools.find(key) ?? 0
  }
}

/** What stands before a file was read: nothing has a price. */
export const noPrices = new PriceTable({ id: '', currency: 'USD', models: [], tools: [] })
