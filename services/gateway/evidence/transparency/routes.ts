import { AdminError, type AdminRoutes } from '../../admin/index.ts'
import type { Anchorer } from './anchorer.ts'
import { TransparencyLogError } from './rekor.ts'

/** `POST /v1/audit/anchors`: anchors a whole ledger and responds with the anchor. `anchorerOf`: by tenant; empty: of the fleet's ledger. */
export function createAnchorRoutes(anchorerOf: (tenant: string) => Pick<Anchorer, 'now'> | null): AdminRoutes {
  return {
    mount(context) {
      // Without a transparency log there is no route.
      if (anchorerOf('') === null) return
      context.on('POST /v1/audit/anchors', async ({ query }, _reply, caller) => {
        const tenant = caller.tenant(query)
        caller.demandTenant(tenant)
        const anchorer = anchorerOf(tenant)
        if (anchorer === null) throw new AdminError('not_found', 'there is no such tenant, or you have no role in it')
        const anchored = await anchorer.now().catch((error: unknown) => {
          if (error instanceof TransparencyLogError) throw new AdminError('upstream_error', error.message)
          throw new AdminError('state_unavailable', 'the checkpoint or its anchor cannot be recorded now')
        })
        if (anchored === null) throw new AdminError('conflict', 'everything up to the last checkpoint is anchored')
        return anchored
      })
    },
  }
}
