import type { Manifest } from '@plat/resources'
import type { Surroundings } from './surroundings.ts'

/** Tools of the servers that the gateway implements; null: not a fixed list. */
const BUILTIN_TOOLS: Readonly<Record<string, readonly string[] | null>> = {
  'plat-web': ['web_fetch', 'web_search'],
  'plat-memory': ['memory_write', 'memory_read', 'memory_search', 'memory_list', 'memory_delete'],
  'plat-exec': ['exec'],
  'plat-infra': ['plan', 'apply', 'verify'],
  'plat-k8s': null,
  'plat-egress': null,
}

/** Tools by the name of their server in policies; null: not known. */
export type Reach = ReadonlyMap<string, ReadonlySet<string> | null>

/** The servers that agents of a namespace can call by name: those of these agents, of the namespace, shared, static and built in. */
export function serversOf(surroundings: Surroundings, namespace: string, agents: readonly Manifest<'Agent'>[]): Reach {
  const { declared, config, tools } = surroundings
  const reach = new Map<string, ReadonlySet<string> | null>()
  for (const [name, known] of Object.entries(BUILTIN_TOOLS)) reach.set(name, known === null ? null : new Set(known))
  for (const name of Object.keys(config.upstreams)) reach.set(name, null)
  for (const { metadata, spec } of declared.servers) {
    const isShared = spec.shared === true && spec.allowedNamespaces?.includes(namespace) === true
    if (metadata.namespace !== namespace && !isShared) continue
    reach.set(metadata.name, tools.get(`${metadata.namespace}/${metadata.name}`) ?? null)
  }
  for (const { spec } of agents) {
    for (const { name, serverRef } of spec.tools ?? []) {
      if (serverRef === undefined && reach.has(name)) continue
      const key = serverRef === undefined ? null : `${serverRef.namespace ?? namespace}/${serverRef.name}`
      // Two agents may bind one name to two servers.
      reach.set(name, key === null ? null : united(reach.get(name), tools.get(key)))
    }
  }
  return reach
}

function united(
  one: ReadonlySet<string> | null | undefined,
  other: ReadonlySet<string> | undefined,
): ReadonlySet<string> | null {
  if (one === undefined) return other ?? null
  return one === null || other === undefined ? null : one.union(other)
}

/** Exposed agents, by their name in policies, with their skills as tools. */
export function calleesOf({ declared }: Surroundings): Reach {
  const callees = new Map<string, ReadonlySet<string> | null>()
  for (const { metadata, spec } of declared.agents) {
    if (spec.a2a?.expose !== true) continue
    const { skills } = spec.a2a
    const tools = skills === undefined ? null : new Set(skills.map(({ id }) => `skill:${id}`))
    callees.set(`a2a/${metadata.namespace}/${metadata.name}`, tools)
  }
  return callees
}

/** Names of all model routes: private ones of agents, and static ones. */
export function routesOf({ declared, config }: Surroundings): readonly string[] {
  const own = declared.agents.filter(({ spec }) => spec.model?.endpoint !== undefined)
  return [...Object.keys(config.models), ...own.map(routeOf)]
}

export function routeOf({ metadata }: Manifest<'Agent'>): string {
  return `${metadata.namespace}.${metadata.name}`
}
