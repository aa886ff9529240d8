import { AdminError, type AdminRoutes } from '../../admin/index.ts'
import type { Anchorer } from './anchorer.ts'
import { TransparencyLogError } from './rekor.ts'

/** `POST /v1/audit/anchors`: anchors the whole ledger and responds with the anchor. */
export function createAnchorRoutes(anchorer: Pick<Anchorer, 'now'>): AdminRoutes {
  return {
    mount(context) {
      context.on('POST /v1/audit/anchors', async () => {
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
