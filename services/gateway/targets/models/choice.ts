import { glob } from '@plat/core'
import { covers, DATA_CLASSES } from '@plat/resources/sovereignty'
import type { Target } from '../../call/index.ts'
import type { RouteEndpoint } from './endpoint.ts'
import type { Route } from './registry.ts'

type DataClass = Target['dataClass']

export interface ChoiceOptions {
  /** Tier to jurisdiction. */
  readonly tierJurisdictions: Readonly<Record<string, string>>
  /** Data class to globs of models. */
  readonly dataClassModels: Readonly<Partial<Record<DataClass, readonly string[]>>>
}

/** Models allowed for a data class, and the order of a route's endpoints (docs/spec/gateway.md, `modelRouting`). */
export class Choice {
  readonly #tierJurisdictions: ReadonlyMap<string, string>
  readonly #allowed: ReadonlyMap<DataClass, readonly ((model: string) => boolean)[]>

  constructor({ tierJurisdictions, dataClassModels }: ChoiceOptions) {
    this.#tierJurisdictions = new Map(Object.entries(tierJurisdictions))
    this.#allowed = allowedModels(dataClassModels)
  }

  /** A class without globs inherits those of the next lower one; if none of them has any, all models are allowed. */
  allows(dataClass: DataClass, model: string): boolean {
    const globs = this.#allowed.get(dataClass)
    return globs === undefined || globs.some((matches) => matches(model))
  }

  /**
   * Returns the endpoints in the order of the route, in two groups if a jurisdiction is preferred: those in it come first. The preference of
   * the route comes first, then `tierJurisdictions`, then the jurisdiction stated by the TrustTier.
   */
  groups(
    { endpoints, preferJurisdiction }: Route,
    tier: string,
    stated: string | null = null,
  ): readonly (readonly RouteEndpoint[])[] {
    const preferred = preferJurisdiction ?? this.#tierJurisdictions.get(tier) ?? stated
    if (preferred === null || endpoints.length === 1) return [endpoints]
    const near = endpoints.filter(({ jurisdiction }) => jurisdiction !== null && covers(preferred, jurisdiction))
    return [near, endpoints.filter((endpoint) => !near.includes(endpoint))]
  }
}

function allowedModels(
  classes: ChoiceOptions['dataClassModels'],
): Map<DataClass, readonly ((model: string) => boolean)[]> {
  const allowed = new Map<DataClass, readonly ((model: string) => boolean)[]>()
  let lower: readonly ((model: string) => boolean)[] | undefined
  for (const name of DATA_CLASSES) {
    lower = classes[name]?.map(glob) ?? lower
    if (lower !== undefined) allowed.set(name, lower)
  }
  return allowed
}
