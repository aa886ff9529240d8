import { reasonOf } from '@plat/core'
import { AdminError, type AdminRoutes } from '../../admin/index.ts'

/** `POST /v1/admin/state:adopt`: an operator confirms that the gateways continue with the state database as it is. */
export function createStateRoutes(adopt: () => Promise<boolean>): AdminRoutes {
  return {
    mount(context) {
      context.on('POST /v1/admin/state:adopt', async (_request, reply) => {
        const hasAdopted = await adopt().catch((error: unknown) => {
          throw new AdminError('state_unavailable', `the state database cannot be adopted: ${reasonOf(error)}`)
        })
        if (!hasAdopted)
          throw new AdminError('conflict', 'the state database has lost nothing: there is nothing to adopt')
        return reply.code(204).send()
      })
    },
  }
}
