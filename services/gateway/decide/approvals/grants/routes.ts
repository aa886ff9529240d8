import { rfc3339 } from '@plat/core'
import { AdminError, type AdminRoutes, page, parameter, queried } from '../../../admin/index.ts'
import type { GrantView } from '../view.ts'
import type { Repeats } from './repeats.ts'
import type { GrantEntry, GrantStore } from './store.ts'

export interface GrantRoutesOptions {
  readonly store: GrantStore
  readonly repeats: Pick<Repeats, 'lift'>
  /** Called when the journal cannot be written. */
  readonly onFault: (error: unknown) => void
}

/** `/v1/session-approvals`: list and lift. */
export function createGrantRoutes({ store, repeats, onFault }: GrantRoutesOptions): AdminRoutes {
  const missing = () => new AdminError('not_found', 'no approval with this id is in force for a session')
  return {
    mount(context) {
      context.on('GET /v1/session-approvals', async ({ query }, _reply, caller) => {
        const names = (['namespace', 'agent', 'session'] as const).map((name) => [name, queried(query, name)] as const)
        const seen = store.list().filter(({ grant }) => caller.sees(grant.namespace))
        const wanted = seen.filter(({ grant }) =>
          names.every(([name, value]) => value === null || grant[name] === value),
        )
        return page(wanted.map(grantView), query)
      })
      context.on('DELETE /v1/session-approvals/:id', async ({ params }, reply, caller) => {
        const id = parameter(params, 'id')
        const entry = store.get(id)
        if (entry === null || !caller.sees(entry.grant.namespace)) throw missing()
        caller.demand(entry.grant.namespace)
        const isLifted = await repeats.lift(id, caller.by).catch((error: unknown) => {
          onFault(error)
          throw new AdminError('state_unavailable', 'approvals cannot be stored now')
        })
        if (!isLifted) throw missing()
        return reply.code(204).send()
      })
    },
  }
}

function grantView({ id, grant }: GrantEntry): GrantView {
  const { namespace, agent, session, user, server, tool, policy, rule, labels, votes, createdAt, expiresAt } = grant
  return {
    ...{ id, namespace, agent, session, user, server, tool, policy, rule, taints: labels },
    by: votes.map((vote) => vote.by),
    createdAt: rfc3339(createdAt),
    expiresAt: rfc3339(expiresAt),
  }
}
