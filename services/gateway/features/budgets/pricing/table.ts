import { glob } from '@plat/core'
import type { ModelPrice } from './price.ts'

/** All prices at one moment. */
export class PriceTable {
  /** `priceId` of outcomes; empty: no prices were read. */
  readonly id: string
  /** ISO 4217. */
  readonly currency: string
  readonly #models: Lookup<ModelPrice>
  readonly #tools: Lookup<number>

  constructor(from: {
    readonly id: string
    readonly currency: string
    readonly models: readonly (readonly [key: string, price: ModelPrice])[]
    readonly tools: readonly (readonly [key: string, perCall: number])[]
  }) {
    this.id = from.id
    this.currency = from.currency
    this.#models = new Lookup(from.models)
    this.#tools = new Lookup(from.tools)
  }

  /** By `<provider>/<model>`; null: no price is known. */
  model(key: string): ModelPrice | null {
    return this.#models.find(key)
  }

  /** Micro-units for one call of `<ns>/<server>/<tool>`; 0 without a price. */
  tool(key: string): number {
    return this.#tools.find(key) ?? 0
  }
}

/** An exact key beats a glob, the longer glob beats the shorter; of two as long, the first in the alphabet. */
class Lookup<T> {
  /** Most gateways know no prices of tools, and a look-up hashes its key. */
  readonly #empty: boolean
  readonly #exact: ReadonlyMap<string, T>
  readonly #globs: readonly { readonly matches: (text: string) => boolean; readonly value: T }[]

  constructor(entries: readonly (readonly [key: string, value: T])[]) {
    this.#empty = entries.length === 0
    this.#exact = new Map(entries.filter(([key]) => !key.includes('*')))
    this.#globs = entries
      .filter(([key]) => key.includes('*'))
      .sort(([one], [other]) => other.length - one.length || (one < other ? -1 : 1))
      .map(([key, value]) => ({ matches: glob(key), value }))
  }

  find(key: string): T | null {
    if (this.#empty) return null
    return this.#exact.get(key) ?? this.#globs.find(({ matches }) => matches(key))?.value ?? null
  }
}

/** What stands before a file was read: nothing has a price. */
export const noPrices = new PriceTable({ id: '', currency: 'USD', models: [], tools: [] })
