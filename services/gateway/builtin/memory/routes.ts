import type { Ledgers } from '@plat/ledger'
import { AdminError, type AdminRoutes, page, parameter, queried } from '../../admin/index.ts'
import { noTenancy, type Tenancy } from '../../call/index.ts'
import type { Memory } from './memory.ts'
import { ownerKey, personNamed } from './owner.ts'

export interface MemoryRoutesOptions {
  readonly memory: Memory
  readonly ledgers: Ledgers
  /** Absent: there are no tenants. */
  readonly tenancy?: Tenancy
  /** Called when the journal or the ledger could not be written. */
  readonly onFault: (error: unknown) => void
}

/** `/v1/memory`: sizes by owner, and erasure of a user. Never returns stored texts. */
export function createMemoryRoutes({
  memory,
  ledgers,
  tenancy = noTenancy,
  onFault,
}: MemoryRoutesOptions): AdminRoutes {
  return {
    mount(context) {
      context.on('GET /v1/memory', async ({ query }, _reply, caller) => {
        const seen = [...memory.owners()].filter(({ owner }) => caller.sees(owner.namespace, owner.tenant))
        return page(
          seen.map(({ owner, items }) => viewOf(owner, [...items])).toSorted((a, b) => (a.id < b.id ? 1 : -1)),
          query,
        )
      })
      context.on('DELETE /v1/memory/users/:user', async (request, _reply, caller) => {
        const user = parameter(request.params, 'user')
        const namespace = queried(request.query, 'namespace')
        const issuer = queried(request.query, 'issuer') ?? ''
        caller.demand(namespace)
        const person = personNamed(user, issuer)
        const erasing = memory.erase(
          ({ scope, who, namespace: where, tenant }, { by }) =>
            (namespace === null || (namespace === where && caller.sees(where, tenant))) &&
            (by.person === person || (scope === 'user' && who === person)),
        )
        const items = await erasing.catch((error: unknown) => {
          onFault(error)
          throw new AdminError('state_unavailable', 'the journal of memory cannot be written: try again')
        })
        const about = { user, ...(issuer !== '' && { issuer }), ...(namespace !== null && { namespace }), items }
        const record = { kind: 'admin', action: 'memory.forgotten', by: caller.by, requestId: request.id } as const
        await ledgers
          .of(namespace === null ? '' : tenancy.of(namespace))
          .append({ ...record, ...about })
          .catch(onFault)
        return about
      })
    },
  }
}

type Owned = ReturnType<Memory['owners']> extends Generator<infer One> ? One : never

function viewOf(owner: Owned['owner'], items: readonly (Owned['items'] extends Iterable<infer I> ? I : never)[]) {
  const { namespace, store, scope, who } = owner
  const bytes = items.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
  return { id: ownerKey(owner), namespace, store, scope, who: who.trimStart(), items: items.length, bytes }
}
