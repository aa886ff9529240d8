import type { TObject } from 'typebox'

/** A problem of a configuration, at a full key path such as `identity.trustedIssuers[1].issuer`. */
export interface Problem {
  readonly path: string
  readonly message: string
  /** `warning`: the gateway starts all the same. */
  readonly severity: 'error' | 'warning'
}

/** A rule sees its own block and the whole file, both with defaults filled in. */
export type Rule = (block: Record<string, unknown>, file: Record<string, unknown>) => readonly Problem[]

/**
 * One table = one block of gateway.json = one feature: schema, defaults and descriptions, and the rules that a schema cannot say.
 */
export interface ConfigBlock {
  /** Key path of the block; `''` for a feature whose keys stand at the top level. Several blocks may share `''`. */
  readonly path: string
  readonly feature: string
  /** A block that is not built refuses to be switched on: `<path>: not built yet in this version`. */
  readonly built: boolean
  /** Defaults and descriptions stand inside the schema. */
  readonly schema: TObject
  readonly rules?: readonly Rule[]
  /** Default: any value that differs from its documented default. */
  readonly switchedOn?: (block: Record<string, unknown>) => boolean
}
