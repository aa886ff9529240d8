import type { Caller } from '../../admin/index.ts'
import type { InventoryParts, ListedServer } from './parts.ts'
import type { NowView } from './view.ts'

/** Agents, and servers that cannot be reached, in a response. */
const AGENTS_MAX = 20
const UNREACHABLE_MAX = 100

/** Servers that a caller may see: of its namespaces, shared with one of them, or of the gateway. */
export function seenServers(caller: Caller, { servers }: Pick<InventoryParts, 'servers'>): readonly ListedServer[] {
  return servers().filter(
    ({ namespace, sharedWith }) =>
      namespace === null || caller.sees(namespace) || sharedWith.some((one) => caller.sees(one)),
  )
}

/** Counts the calls in progress that a caller may see; and what makes the gateway unready, for callers with a role in all namespaces. */
export function nowView(caller: Caller, parts: InventoryParts): NowView {
  const { live, problems, system } = parts
  const agents = new Map<string, number>()
  const sessions = new Set<string>()
  let [total, long] = [0, 0]
  const isSeen = remembered(caller)
  live.each(({ identity: { tenant, namespace, agent, session }, long: isLong }) => {
    if (!isSeen(namespace, tenant)) return
    const id = `${namespace}/${agent}`
    total++
    if (isLong) long++
    agents.set(id, (agents.get(id) ?? 0) + 1)
    sessions.add(`${id}/${session}`)
  })
  const busiest = [...agents].toSorted(([, one], [, other]) => other - one).slice(0, AGENTS_MAX)
  return {
    calls: { total, long },
    sessions: sessions.size,
    agents: busiest.map(([id, calls]) => ({ id, calls })),
    problems: caller.sees(null) ? [...problems()] : null,
    health: caller.sees(null) ? healthOf(system()) : null,
    unreachable: seenServers(caller, parts)
      .flatMap(({ upstream: { key } }) => {
        const reason = parts.unreachable(key)
        return reason === null ? [] : [{ id: key, reason }]
      })
      .slice(0, UNREACHABLE_MAX),
  }
}

/** Thousands of calls in progress are of a few namespaces. */
function remembered(caller: Caller): (namespace: string, tenant: string) => boolean {
  const seen = new Map<string, boolean>()
  return (namespace, tenant) => seen.getOrInsertComputed(`${tenant}/${namespace}`, () => caller.sees(namespace, tenant))
}

function healthOf({ ledger, state, sinks }: ReturnType<InventoryParts['system']>): NonNullable<NowView['health']> {
  return { ledger, state, sinks: [...sinks] }
}
