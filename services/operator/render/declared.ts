import type { Kind, Manifest } from '@plat/resources'

/** The resources that are rendered, all namespaces together, defaults filled in. */
export interface Declared {
  readonly agents: readonly Manifest<'Agent'>[]
  readonly servers: readonly Manifest<'MCPServer'>[]
  readonly policies: readonly Manifest<'ToolPolicy'>[]
  readonly budgets: readonly Manifest<'BudgetPolicy'>[]
  /** ISO 4217: what the gateway counts in. Budgets in another are refused. */
  readonly currency: string
  /** CA bundles of ConfigMaps, by `<namespace>/<name>/<key>`. */
  readonly bundles: ReadonlyMap<string, string>
}

/** `<namespace>/<name>`. */
export function keyOf({ metadata }: Manifest): string {
  return `${metadata.namespace}/${metadata.name}`
}

/** By namespace and name, so that the same resources always give the same bytes. */
export function sorted<K extends Kind>(objects: readonly Manifest<K>[]): Manifest<K>[] {
  return objects.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
}
