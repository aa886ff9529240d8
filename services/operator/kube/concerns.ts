import { type Resource, tierOfAgent } from '@plat/resources'
import { toolServers } from '../status/sovereign.ts'
import type { Followed } from './mirror.ts'

/** Kinds whose status follows from a rendering. */
export type RenderedKind = Exclude<Followed, 'AgentSession'>

/** Objects of a kind whose status says something about objects that have changed. */
export interface Concerned {
  readonly kind: RenderedKind
  readonly includes: (object: Resource) => boolean
}

/**
 * Returns what is concerned by a change of objects of one kind. `objects`: each as it was and as it is. `hasSovereignty`: whether there is
 * a SovereigntyPolicy, without which a server says nothing about the Agents that use it.
 */
export function concernedBy(
  kind: RenderedKind,
  keys: readonly string[],
  { objects, hasSovereignty }: { readonly objects: readonly Resource[]; readonly hasSovereignty: boolean },
): readonly Concerned[] {
  switch (kind) {
    case 'MCPServer': {
      const servers = new Set(keys)
      const uses = (agent: Resource) => isAgent(agent) && toolServers(agent).some((key) => servers.has(key))
      return hasSovereignty ? [{ kind: 'Agent', includes: uses }] : []
    }
    case 'TrustTier': {
      const tiers = new Set(keys)
      return [{ kind: 'Agent', includes: (agent) => isAgent(agent) && tiers.has(tierOfAgent(agent.spec)) }]
    }
    case 'ToolPolicy': {
      const names = new Set(objects.filter(isPolicy).flatMap(({ spec }) => Object.keys(spec.toolPins ?? {})))
      return names.size === 0 ? [] : [{ kind: 'MCPServer', includes: ({ metadata }) => names.has(metadata.name) }]
    }
    case 'SovereigntyPolicy':
      return [
        { kind: 'Agent', includes: () => true },
        { kind: 'MCPServer', includes: () => true },
      ]
    default:
      return []
  }
}

function isAgent(object: Resource): object is Resource<'Agent'> {
  return object.kind === 'Agent'
}

function isPolicy(object: Resource): object is Resource<'ToolPolicy'> {
  return object.kind === 'ToolPolicy'
}
