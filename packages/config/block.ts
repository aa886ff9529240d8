import type { TObject } from 'typebox'

/** Longest timer of Node in whole seconds (about 24 days): the maximum of keys that become a timer. */
export const LONGEST_SECONDS = 2_147_483

/** A problem of a configuration, at a full key path such as `identity.trustedIssuers[1].issuer`. */
export interface Problem {
  readonly path: string
  readonly message: string
  /** `warning`: the gateway starts anyway. */
  readonly severity: 'error' | 'warning'
  /** Problems that a lenient validator treats differently; absent for all others. */
  readonly kind?: 'unknown_key' | 'missing_file' | 'not_built'
}

/**
 * Members that a key's schema may have beside JSON Schema (written as options of the TypeBox type). A key with a `default` may be absent and is
 * filled; an optional one may be absent and stays so; any other is required.
 */
export interface KeyNotes {
  /** False: any value except the default gives `<path>: not built yet in this version`. */
  readonly built?: boolean
  /** The string names a file; the value says how its absence at start is reported. `fails closed` is reported as a warning. */
  readonly file?: 'error' | 'warning' | 'fails closed'
  /** `http-url`: http or https with a host. `listen-address`: `:8080`, `127.0.0.1:0`, `[::1]:8080`. */
  readonly format?: 'http-url' | 'listen-address'
}

/** A rule receives its own block and the whole file, both with defaults filled in. */
export type Rule = (block: Record<string, unknown>, file: Record<string, unknown>) => readonly Problem[]

/** One table = one block of gateway.json = one feature: schema, defaults and descriptions, and the rules that a schema cannot express. */
export interface ConfigBlock {
  /** Key path of the block; `''` for a feature with keys at the top level. Several blocks may share `''`. */
  readonly path: string
  readonly feature: string
  /** A block that is not built refuses to be enabled: `<path>: not built yet in this version`. */
  readonly built: boolean
  /** Contains defaults and descriptions. */
  readonly schema: TObject
  readonly rules?: readonly Rule[]
  /** Default: any value that differs from its documented default. */
  readonly switchedOn?: (block: Record<string, unknown>) => boolean
}
