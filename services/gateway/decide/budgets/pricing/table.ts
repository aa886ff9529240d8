import { GlobTable } from '@plat/core'
import type { PricedModel } from '../../../call/index.ts'
import { type ModelPrice, withOptions } from './price.ts'
import type { SandboxPrice } from './sandbox.ts'

/** An immutable set of prices. */
export class PriceTable {
  /** `priceId` of outcomes; empty: no prices loaded. */
  readonly id: string
  /** ISO 4217. */
  readonly currency: string
  /** Null: sandboxes are free. */
  readonly sandbox: SandboxPrice | null
  readonly modelKeys: readonly string[]
  readonly toolKeys: readonly string[]
  readonly #models: GlobTable<ModelPrice>
  /** Whether any price is scoped to a route or an upstream. */
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
    this.toolKeys = from.tools.map(([key]) => key)
    this.#models = new GlobTable(from.models)
    this.#isScoped = this.modelKeys.some((key) => key.includes('#'))
    this.#tools = new GlobTable(from.tools)
  }

  /**
   * Returns the price of a model at an endpoint with the caller's options, or null if unknown. A price scoped to the route or upstream
   * takes precedence over one of the model alone.
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

  /** Returns the price of a call of `<ns>/<server>/<tool>` in micro-units; 0 without a price. */
  tool(key: string): number {
    return this.#tools.find(key) ?? 0
  }
}

/** Initial table: no prices. */
export const noPrices = new PriceTable({ id: '', currency: 'USD', models: [], tools: [] })
