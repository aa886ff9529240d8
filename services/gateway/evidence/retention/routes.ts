import { reasonOf } from '@plat/core'
import {
  HoldKeeper,
  type LegalHold,
  readHoldTarget,
  readLegalHolds,
  TooManyHoldsError,
  textOfTarget,
} from '@plat/ledger'
import Type from 'typebox'
import { AdminError, type AdminRoutes, bodyAs, page, parameter } from '../../admin/index.ts'
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

/** `/v1/audit/holds`: legal holds, which keep segments of the ledger. */
export function createHoldRoutes({ config, ledger, clock, ids, log }: RetentionOptions): AdminRoutes {
  const ledgerPath = config.auditPath
  const keeper = new HoldKeeper({ ledgerPath, ledger, clock, ids })
  const unavailable = (error: unknown): never => {
    if (error instanceof TooManyHoldsError) throw new AdminError('conflict', error.message)
    log.error({ path: ledgerPath, reason: reasonOf(error) }, 'legal holds cannot be read, stored or recorded')
    throw new AdminError('state_unavailable', 'legal holds cannot be read, stored or recorded now; see the log')
  }
  return {
    mount(context) {
      context.on('GET /v1/audit/holds', async ({ query }) => {
        const holds = await readLegalHolds(ledgerPath).catch(unavailable)
        return page(holds.toReversed().map(viewOf), query)
      })
      context.on('POST /v1/audit/holds', async ({ body }, reply, caller) => {
        const { target, reason = '' } = bodyAs(holdSchema, body)
        const found = readHoldTarget(target)
        if (found === null) throw new AdminError('invalid_request', TARGET)
        reply.code(201)
        return viewOf(await keeper.add(found, caller.by, reason).catch(unavailable))
      })
      context.on('DELETE /v1/audit/holds/:id', async ({ params }, reply, caller) => {
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
