import { createInventory } from '../operate/inventory/index.ts'
import type { ReachabilityView } from '../planes/mcp/index.ts'
import { registrySlot } from '../targets/servers/index.ts'
import type { Sinks } from './evidence.ts'
import type { Features } from './features.ts'
import type { Shared } from './shared.ts'

/** Lists of what is in force. */
export function inventoryOf(
  { snapshots, live, readiness, audit, state }: Pick<Shared, 'snapshots' | 'live' | 'readiness' | 'audit' | 'state'>,
  { policies, models, agents, sinks, mcp }: Features & { readonly sinks: Sinks; readonly mcp: ReachabilityView },
) {
  return createInventory({
    policies: () => policies.listed(),
    hits: (policy, rule) => policies.hits(policy, rule),
    servers: () => snapshots.current.get(registrySlot).listed,
    models: () => models.listed(),
    health() {
      const endpoints = models.listed().flatMap((route) => route.endpoints)
      return new Map(
        endpoints.map((one) => {
          const latencies = models.balancer.measuredOf(one)
          return [one.key, { isReady: models.credentials.isReady(one), ...models.circuits.stateOf(one), latencies }]
        }),
      )
    },
    agents: () => agents.listed(),
    live,
    problems: () => readiness.reasons(),
    system: () => ({
      ledger: audit.ledgers.of('').health === 'ok',
      state: state.problem(),
      sinks: sinks.states(),
    }),
    unreachable: (server) => mcp.unreachable(server),
  })
}
