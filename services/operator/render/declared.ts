import type { Kind, Manifest } from '@plat/resources'
import type { Cedar } from '@plat/resources/cedar'
import type { EndpointPlace } from '@plat/resources/regions'
import type { Compiled } from '../openapi/compile/compile.ts'
import type { StdioPlace } from '../stdio/place.ts'

/** The resources that are rendered, all namespaces together, defaults filled in. */
export interface Declared {
  readonly agents: readonly Manifest<'Agent'>[]
  readonly servers: readonly Manifest<'MCPServer'>[]
  readonly policies: readonly Manifest<'ToolPolicy'>[]
  readonly budgets: readonly Manifest<'BudgetPolicy'>[]
  readonly memory: readonly Manifest<'MemoryStore'>[]
  readonly sovereignty: readonly Manifest<'SovereigntyPolicy'>[]
  readonly tiers: readonly Manifest<'TrustTier'>[]
  /**
   * The operator's own namespace on a cluster. Null on files: there AgentSessions and AgentRevocations mean nothing, and what only
   * sandboxes can keep is refused.
   */
  readonly home: string | null
  /** ISO 4217: what the gateway counts in. Budgets in another are refused. */
  readonly currency: string
  /** Validates Cedar policies; null if there are none, or the engine cannot be loaded (then the gateway denies). */
  readonly cedar: Cedar | null
  /** CA bundles of ConfigMaps. */
  readonly bundles: ReferencedTexts
  /** Tools of servers with `openapi`, by `<namespace>/<name>`; a server that is not among them is refused. Absent: none. */
  readonly apis?: ApiResults
  /** How stdio servers run on a cluster. Absent or null: they do not. */
  readonly stdio?: StdioPlace | null
  /**
   * Objects that are left out because a file of all namespaces would otherwise be too large, by `<Kind> <namespace>/<name>`: the name of
   * the file. Absent: none.
   */
  readonly oversized?: ReadonlyMap<string, string>
}

/** The tools of an API, or why there are none: a problem at a field of `openapi`; empty: of all of it. */
export type ApiResult = Compiled | { readonly field: string; readonly why: string }

/** By `<namespace>/<name>` of the MCPServer. */
export type ApiResults = ReadonlyMap<string, ApiResult>

/** How an object is named among those of all kinds: `<Kind> <namespace>/<name>`. */
export function objectKey(kind: Kind, key: string): string {
  return `${kind} ${key}`
}

export function objectKeyOf(object: Manifest): string {
  return objectKey(object.kind, keyOf(object))
}

/** Values of Secrets or ConfigMaps that resources name, by `<namespace>/<name>/<key>`. */
export interface ReferencedTexts {
  readonly texts: ReadonlyMap<string, string>
  /** Why a value is not among them although it may exist, such as `exceeds the share of its namespace`. */
  readonly withheld: ReadonlyMap<string, string>
}

/** `<namespace>/<name>`, or the name alone where the kind has no namespaces. */
export function keyOf({ metadata: { namespace, name } }: Manifest): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

/** By namespace and name, so that the same resources always give the same bytes. */
export function sorted<K extends Kind>(objects: readonly Manifest<K>[]): Manifest<K>[] {
  return objects.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
}

type Endpoint = Partial<NonNullable<NonNullable<Manifest<'Agent'>['spec']['model']>['fallbacks']>[number]>

/** The members of a model route that determine where its endpoint processes requests. */
export function endpointPlace({ adapter, adapterMode, endpoint, region, jurisdiction }: Endpoint): EndpointPlace {
  return { provider: adapter, mode: adapterMode, upstream: endpoint, region, jurisdiction }
}
