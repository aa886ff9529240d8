import type { Caller } from '../../admin/index.ts'
import type { InventoryParts } from './parts.ts'
import type { NowView } from './view.ts'

/** Agents in a response. */
const AGENTS_MAX = 20

/** Counts the calls in progress that a caller may see; and what makes the gateway unready, for callers with a role in all namespaces. */
export function nowView(caller: Caller, { live, problems }: Pick<InventoryParts, 'live' | 'problems'>): NowView {
  const agents = new Map<string, number>()
  const sessions = new Set<string>()
  const seen = new Map<string, boolean>()
  let [total, long] = [0, 0]
  live.each(({ identity: { namespace, agent, session }, long: isLong }) => {
    if (!seen.getOrInsertComputed(namespace, () => caller.sees(namespace))) return
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
  }
}
