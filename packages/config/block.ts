import type { Static, TObject } from 'typebox'

/** Longest timer of Node in whole seconds (about 24 days): the maximum of keys that become a timer. */
export const LONGEST_SECONDS = 2_147_483

/** A problem of a configuration, at a full key path such as `identity.trustedIssuers[1].issuer`. */
export interface Problem {
  readonly path: string
  readonly message: string
  /** `warning`: the gateway starts anyway. */
  readonly severity: 'error' | 'warning'
  /** Problems that a lenient validator treats differently; absent for all others. */
  readonly kind?: 'unknown_key' | 'missing_file'
}

/**
 * Members that a key's schema may have beside JSON Schema (written as options of the TypeBox type). A key with a `default` may be absent and is
 * filled; an optional one may be absent and stays so; any other is required.
 */
export interface KeyNotes {
  /** The string names a file; the value says how its absence at start is reported. `fails closed` is reported as a warning. */
  readonly file?: 'error' | 'warning' | 'fails closed'
  /** `http-url`: http or https with a host. `listen-address`: `:8080`, `127.0.0.1:0`, `[::1]:8080`. */
  readonly format?: 'http-url' | 'listen-address'
}

/**
 * A rule receives its own block and the whole file, both with defaults filled in. A value that is wrong is replaced by its default; what has
 * none is absent. Declared as a method, so that a list of blocks may hold rules of different blocks.
 */
export type Rule<Block = Record<string, unknown>> = {
  rule(block: Block, file: Record<string, unknown>): readonly Problem[]
}['rule']

/** A block as rules receive it: values that are missing or wrong are reported already. */
export type Unfinished<T> = T extends readonly (infer Item)[]
  ? readonly (Unfinished<Item> | undefined)[]
  : T extends object
    ? { readonly [Key in keyof T]?: Unfinished<T[Key]> }
    : T

export type RuleOf<Schema extends TObject> = Rule<Unfinished<Static<Schema>>>

/** One table = one block of gateway.json = one feature: schema, defaults and descriptions, and the rules that a schema cannot express. */
export interface ConfigBlock {
  /** Key path of the block; `''` for a feature with keys at the top level. Several blocks may share `''`. */
  readonly path: string
  readonly feature: string
  /** Contains defaults and descriptions. */
  readonly schema: TObject
  readonly rules?: readonly Rule[]
}

/** Argument of `defineBlock`: like `ConfigBlock`, with rules that receive the type of its schema. */
interface BlockDefinition<Path extends string, Schema extends TObject> extends Pick<ConfigBlock, 'feature'> {
  readonly path: Path
  readonly schema: Schema
  readonly rules?: readonly RuleOf<Schema>[]
}

interface DefinedBlock<Path extends string, Schema extends TObject> extends ConfigBlock {
  readonly path: Path
  readonly schema: Schema
}

/** Returns a block that keeps the types of its path and schema, for `ConfigOf`. */
export function defineBlock<const Path extends string, Schema extends TObject>(
  block: BlockDefinition<Path, Schema>,
): DefinedBlock<Path, Schema> {
  return block
}

/** The type of a file that these blocks describe: the keys of a block with path `''` are keys of the file, those of others are under the path. */
export type ConfigOf<Blocks extends readonly ConfigBlock[], Config = unknown> = Blocks extends readonly [
  infer First extends ConfigBlock,
  ...infer Rest extends readonly ConfigBlock[],
]
  ? ConfigOf<Rest, Config & Under<First['path'], Readonly<Static<First['schema']>>>>
  : Config

type Under<Path extends string, Value> = Path extends ''
  ? Value
  : Path extends `${infer Key}.${infer Rest}`
    ? { readonly [K in Key]: Under<Rest, Value> }
    : { readonly [K in Path]: Value }
