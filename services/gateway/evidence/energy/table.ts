import { GlobTable } from '@plat/core'

/** What nobody knows exactly lies between two bounds. */
export interface Bounds {
  readonly min: bigint
  readonly max: bigint
}

/** What a model needs. At least one of both is there. */
export interface ModelFactors {
  /** By its tokens; null: it is reckoned by time alone. In millionths of a Wh per 1,000 tokens. */
  readonly tokens: { readonly input: Bounds; readonly cachedRead: Bounds; readonly output: Bounds } | null
  /** While it answers; null: it is reckoned by tokens alone. In millionths of a W. */
  readonly watts: Bounds | null
}

/** All factors at one moment. */
export class EnergyTable {
  /** Names the table in records; empty: none was read. */
  readonly id: string
  readonly #models: GlobTable<ModelFactors>
  readonly #regions: GlobTable<Bounds>

  constructor(from: {
    readonly id: string
    readonly models: readonly (readonly [pattern: string, factors: ModelFactors])[]
    readonly regions: readonly (readonly [pattern: string, intensity: Bounds])[]
  }) {
    this.id = from.id
    this.#models = new GlobTable(from.models)
    this.#regions = new GlobTable(from.regions)
  }

  /** By `<provider>/<model>`; null: nothing is known of it. */
  model(key: string): ModelFactors | null {
    return this.#models.find(key)
  }

  /** Micrograms of CO2e for each kWh of a region's grid; null: nothing is known of it. */
  region(name: string): Bounds | null {
    return this.#regions.find(name)
  }
}

/** What stands before a file was read: nothing is estimated. */
export const noFactors = new EnergyTable({ id: '', models: [], regions: [] })
