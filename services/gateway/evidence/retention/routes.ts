import { reasonOf } from '@plat/core'
import {
  HoldKeeper,
  type LegalHold,
  readHoldTarget,
  readLegalHolds,
  TooManyHoldsError,
  textOfTarget,
} from '@plat/ledger'
import type { Log } from '@plat/process'
import Type from 'typebox'
import { AdminError, type AdminRoutes, bodyAs, type Caller, page, parameter } from '../../admin/index.ts'
import type { RetentionOptions } from './options.ts'

/** Body of `POST /v1/audit/holds`. */
export const holdSchema = Type.Object(
  {
    target: Type.String({
      minLength: 1,
      maxLength: 800,
      description: '`namespace/agent/session`, `namespace/agent`, or `from..to`: two records, or two times.',
    }),
    reason: Type.Optional(Type.String({ maxLength: 1024 })),
  },
  { additionalProperties: false },
)

const TARGET =
  'target: must be session:namespace/agent/id, agent:namespace/name, or from..to (two record numbers, or two times)'

export interface HoldRoutesOptions {
  /** Returns the holds of the ledger of a tenant, or null; empty: the fleet's. */
  readonly holdsOf: (tenant: string) => LedgerHolds | null
  readonly log: Log
}

/** Legal holds of one ledger. */
export interface LedgerHolds {
  readonly path: string
  readonly keeper: HoldKeeper
}

export function holdsOf({ config, ledger, clock, ids }: RetentionOptions): LedgerHolds {
  return { path: config.auditPath, keeper: new HoldKeeper({ ledgerPath: config.auditPath, ledger, clock, ids }) }
}

/** `/v1/audit/holds`: legal holds, which keep segments of the ledger. */
export function createHoldRoutes({ holdsOf, log }: HoldRoutesOptions): AdminRoutes {
  const found = (caller: Caller, query: unknown): LedgerHolds => {
    const tenant = caller.tenant(query)
    caller.demandTenant(tenant)
    const holds = holdsOf(tenant)
    if (holds === null) throw new AdminError('not_found', 'there is no such tenant, or you have no role in it')
    return holds
  }
  const unavailable = (error: unknown): never => {
    if (error instanceof TooManyHoldsError) throw new AdminError('conflict', error.message)
    log.error({ reason: reasonOf(error) }, 'legal holds cannot be read, stored or recorded')
    throw new AdminError('state_unavailable', 'legal holds cannot be read, stored or recorded now; see the log')
  }
  return {
    mount(context) {
      context.on('GET /v1/audit/holds', async ({ query }, _reply, caller) => {
        const holds = await readLegalHolds(found(caller, query).path).catch(unavailable)
        return page(holds.toReversed().map(viewOf), query)
      })
      context.on('POST /v1/audit/holds', async ({ body, query }, reply, caller) => {
        const { keeper } = found(caller, query)
        const { target, reason = '' } = bodyAs(holdSchema, body)
        const held = readHoldTarget(target)
        if (held === null) throw new AdminError('invalid_request', TARGET)
        reply.code(201)
        return viewOf(await keeper.add(held, caller.by, reason).catch(unavailable))
      })
      context.on('DELETE /v1/audit/holds/:id', async ({ params, query }, reply, caller) => {
        const { keeper } = found(caller, query)
        const isReleased = await keeper.release(parameter(params, 'id'), caller.by).catch(unavailable)
        if (!isReleased) throw new AdminError('not_found', 'there is no legal hold with this id')
        return reply.code(204).send()
      })
    },
  }
}

function viewOf({ target, ...hold }: LegalHold) {
  return { ...hold, target: textOfTarget(target) }
}
