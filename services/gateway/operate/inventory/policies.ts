import type { PolicyEntry } from '@plat/resources/rendered'
import type { InventoryParts } from './parts.ts'
import type { PolicyView } from './view.ts'

interface InForce {
  readonly revision: string
  /** Why a Cedar text denies everything, by policy. */
  readonly faults: ReadonlyMap<string, string | null>
  readonly hits: InventoryParts['hits']
}

/** The policy as written, with the counts of its rules. */
export function policyView(
  { name, namespace, agents, mode, defaultAction, cedar, rules }: PolicyEntry,
  { revision, faults, hits }: InForce,
): PolicyView {
  return {
    id: name,
    namespace,
    agents,
    mode,
    defaultAction,
    cedar: cedar || null,
    cedarFault: faults.get(name) ?? null,
    rules: rules.map((rule) => ({ ...rule, match: { ...rule.match }, ...hits(name, rule.name) })),
    defaultHits: hits(name, null).hits,
    revision,
  }
}
