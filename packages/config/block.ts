import type { TObject } from 'typebox'

/** The longest timer that Node keeps, in whole seconds (about 24 days): the maximum of keys that become one. */
export const LONGEST_SECONDS = 2_147_483

/** A problem of a configuration, at a full key path such as `identity.trustedIssuers[1].issuer`. */
export interface Problem {
  readonly path: string
  readonly message: string
  /** `warning`: the gateway starts all the same. */
  readonly severity: 'error' | 'warning'
  /** What a lenient validator judges differently; absent for everything else. */
  readonly kind?: 'unknown_key' | 'missing_file' | 'not_built'
}

/**
 * What a schema of a key may carry beside JSON Schema (written as options of the TypeBox type).
 * A key with a `default` may be absent and is filled; an optional one may be absent and stays so; any other is required.
 */
export interface KeyNotes {
  /** False: any value but the default answers `<path>: not built yet in this version`. */
  readonly built?: boolean
  /** The string names a file; what its absence at start means. `fails closed` is told as a warning. */
  readonly file?: 'error' | 'warning' | 'fails closed'
  /** `http-url`: http or https with a host. `listen-address`: `:8080`, `127.0.0.1:0`, `[::1]:8080`. */
  readonly format?: 'http-url' | 'listen-address'
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
