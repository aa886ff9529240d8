import { rfc3339 } from '@plat/core'
import { AdminError, type AdminRoutes, page, parameter, queried } from '../../../admin/index.ts'
import type { GrantView } from '../view.ts'
import type { SessionGrant } from './events.ts'
import type { Repeats } from './repeats.ts'
import type { GrantEntry, GrantStore } from './store.ts'

/** Returns the current taint labels of a session, without those of its tokens. */
export type LabelsOf = (session: Pick<SessionGrant, 'namespace' | 'agent' | 'session'>) => readonly string[]

export interface GrantRoutesOptions {
  readonly store: GrantStore
  readonly repeats: Pick<Repeats, 'lift'>
  /** Returns the current labels of a session. */
  readonly labelsOf: LabelsOf
  /** Called when the journal cannot be written. */
  readonly onFault: (error: unknown) => void
}

/** `/v1/session-approvals`: list and lift. */
export function createGrantRoutes({ store, repeats, labelsOf, onFault }: GrantRoutesOptions): AdminRoutes {
  const missing = () => new AdminError('not_found', 'no approval with this id is in force for a session')
  return {
    mount(context) {
      context.on('GET /v1/session-approvals', async ({ query }, _reply, caller) => {
        const names = (['namespace', 'agent', 'session'] as const).map((name) => [name, queried(query, name)] as const)
        const seen = store.list().filter(({ grant }) => caller.sees(grant.namespace, grant.tenant))
        const wanted = seen.filter(({ grant }) =>
          names.every(([name, value]) => value === null || grant[name] === value),
        )
        return page(
          wanted.map((entry) => grantView(entry, labelsOf(entry.grant))),
          query,
        )
      })
      context.on('DELETE /v1/session-approvals/:id', async ({ params }, reply, caller) => {
        const id = parameter(params, 'id')
        const entry = store.get(id)
        if (entry === null || !caller.sees(entry.grant.namespace, entry.grant.tenant)) throw missing()
        caller.demand(entry.grant.namespace, entry.grant.tenant)
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

function grantView({ id, grant }: GrantEntry, now: readonly string[]): GrantView {
  const { namespace, agent, session, user, server, tool, policy, rule, labels, votes, createdAt, expiresAt } = grant
  return {
    ...{ id, namespace, agent, session, user, server, tool, policy, rule, taints: labels },
    newTaints: now.filter((label) => !labels.includes(label)),
    by: votes.map((vote) => vote.by),
    createdAt: rfc3339(createdAt),
    expiresAt: rfc3339(expiresAt),
  }
}
