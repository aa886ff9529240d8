import { GlobTable } from '@plat/core'

/** Bounds of an uncertain value. */
export interface Bounds {
  readonly min: bigint
  readonly max: bigint
}

/** Energy factors of a model; at least one of both is set. */
export interface ModelFactors {
  /** Millionths of a Wh per 1,000 tokens, or null. */
  readonly tokens: { readonly input: Bounds; readonly cachedRead: Bounds; readonly output: Bounds } | null
  /** Power during a response in millionths of a W, or null. */
  readonly watts: Bounds | null
}

/** An immutable table of factors. */
export class EnergyTable {
  /** Id of the table in records; empty before one was read. */
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

  /** Looks up `<provider>/<model>`. Returns null if unknown. */
  model(key: string): ModelFactors | null {
    return this.#models.find(key)
  }

  /** Micrograms of CO2e per kWh of a region's grid, or null if unknown. */
  region(name: string): Bounds | null {
    return this.#regions.find(name)
  }
}

/** In force before a file was read: nothing is estimated. */
export const noFactors = new EnergyTable({ id: '', models: [], regions: [] })
