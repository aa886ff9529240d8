import { type Clock, type Ids, rfc3339Micros } from '@plat/core'
import { AdminError, type AdminRoutes, bodyAs, type Caller, page, parameter } from '../../admin/index.ts'
import { isNoTime, type Revocation, type RevocationTarget, revocationRequestSchema, whole } from './format.ts'
import { endOf } from './list.ts'
import type { Revocations } from './revocations.ts'
import { ListFullError } from './stored-revocations.ts'

export interface RevocationRoutesOptions {
  readonly revocations: Revocations
  readonly clock: Clock
  readonly ids: Ids
  /** Called when the journal fails. */
  readonly onFault: (error: unknown) => void
}

/** `/v1/revocations`: list, create, lift (docs/spec/gateway.md, "Endpoints"). */
export function createRevocationRoutes({ revocations, clock, ids, onFault }: RevocationRoutesOptions): AdminRoutes {
  const full = (error: unknown) => {
    if (error instanceof ListFullError) throw new AdminError('backlog_full', `the list is full: ${error.message}`)
    throw error
  }
  const unkept = (fault: unknown, meanwhile: string) => {
    onFault(fault)
    return new AdminError('state_unavailable', `the journal of revocations cannot be written: ${meanwhile}`)
  }
  const made = (body: unknown): Revocation => {
    const now = clock.now()
    const revocation = whole({
      id: ids.uuid(),
      createdAt: rfc3339Micros(now),
      ...bodyAs(revocationRequestSchema, body),
    })
    if (isNoTime(revocation.expiresAt)) throw new AdminError('invalid_request', 'expiresAt: not a valid time')
    if (endOf(revocation) <= now) throw new AdminError('invalid_request', 'expiresAt: must be in the future')
    return revocation
  }
  return {
    mount(context) {
      context.on('GET /v1/revocations', async ({ query }, _reply, caller) =>
        page(
          revocations.list().filter(({ target }) => seesTarget(caller, target)),
          query,
        ),
      )
      context.on('POST /v1/revocations', async (request, reply, caller) => {
        const revocation = made(request.body)
        demandTarget(caller, revocation.target)
        const { cut, fault } = await revocations.revoke(revocation, caller.by).catch(full)
        if (fault !== null) throw unkept(fault, 'the entry is in force on this replica only, until it restarts')
        reply.code(201)
        return { ...revocation, cut }
      })
      context.on('DELETE /v1/revocations/:id', async (request, reply, caller) => {
        const id = parameter(request.params, 'id')
        const known = revocations.list().find((one) => one.id === id)
        if (known === undefined || !seesTarget(caller, known.target)) throw unknown()
        demandTarget(caller, known.target)
        const lifted = await revocations.lift(id, caller.by).catch((fault: unknown) => {
          throw unkept(fault, 'the entry remains in force')
        })
        if (lifted === 'unknown') throw unknown()
        if (lifted === 'listed') throw new AdminError('conflict', 'the entry is in revocationsFile: remove it there')
        return reply.code(204).send()
      })
    },
  }
}

const unknown = () => new AdminError('not_found', 'there is no revocation with this id')

/** A tenant is of those with a role in all of it; users, tokens and all callers are of those with one everywhere. */
function seesTarget(caller: Caller, target: RevocationTarget): boolean {
  return target.tenant === undefined ? caller.sees(namespaceOf(target)) : caller.seesTenant(target.tenant)
}

/** Throws `forbidden` unless the caller has the route's role wherever the target is. */
export function demandTarget(caller: Caller, target: RevocationTarget): void {
  if (target.tenant === undefined) caller.demand(namespaceOf(target))
  else caller.demandTenant(target.tenant)
}

/** Returns the namespace that contains all targets, or null if they may be in any. */
export function namespaceOf({ session, agent, namespace }: RevocationTarget): string | null {
  return (session ?? agent ?? namespace)?.split('/', 1)[0] ?? null
}
