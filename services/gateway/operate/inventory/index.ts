import { type AdminRoutes, type Caller, page } from '../../admin/index.ts'
import { agentViews } from './agents.ts'
import { modelView, seenRoute } from './models.ts'
import { nowView, seenServers } from './now.ts'
import type { InventoryParts } from './parts.ts'
import { policyView } from './policies.ts'
import { serverView } from './servers.ts'

export type { InventoryParts } from './parts.ts'

/** `/v1/policies`, `/v1/servers`, `/v1/models`, `/v1/agents`: what is in force on this gateway, as far as the caller's namespaces reach. */
export function createInventory(parts: InventoryParts): { readonly routes: AdminRoutes } {
  const policiesFor = (caller: Caller) => parts.policies().entries.filter(({ namespace }) => caller.sees(namespace))
  const modelsFor = (caller: Caller) => parts.models().flatMap((route) => seenRoute(route, seenBy(caller)) ?? [])
  const routes: AdminRoutes = {
    mount(context) {
      context.on('GET /v1/now', async (_request, _reply, caller) => nowView(caller, parts))
      context.on('GET /v1/policies', async ({ query }, _reply, caller) => {
        const { revision, cedars } = parts.policies()
        const faults = new Map(cedars.map(({ policy, fault }) => [policy, fault]))
        const views = policiesFor(caller).map((entry) => policyView(entry, { revision, faults, hits: parts.hits }))
        return ordered(views, query)
      })
      context.on('GET /v1/servers', async ({ query }, _reply, caller) => {
        const sees = seenBy(caller)
        const seen = seenServers(caller, parts)
        return ordered(
          seen.map((one) => serverView(one, { sees, unreachable: parts.unreachable(one.upstream.key) })),
          query,
        )
      })
      context.on('GET /v1/models', async ({ query }, _reply, caller) => {
        const health = parts.health()
        return ordered(
          modelsFor(caller).map((route) => modelView(route, health)),
          query,
        )
      })
      context.on('GET /v1/agents', async ({ query }, _reply, caller) => {
        const exposed = parts.agents().filter(({ namespace }) => caller.sees(namespace))
        return ordered(agentViews({ policies: policiesFor(caller), models: modelsFor(caller), exposed }), query)
      })
    },
  }
  return { routes }
}

function seenBy(caller: Caller): (namespace: string) => boolean {
  return (namespace) => caller.sees(namespace)
}

/** A page in descending order of ids, as every list of the admin API. */
function ordered<T extends { readonly id: string }>(items: readonly T[], query: unknown) {
  return page(
    items.toSorted((one, other) => (one.id < other.id ? 1 : -1)),
    query,
  )
}
