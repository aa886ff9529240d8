import Type, { type Static } from 'typebox'
import { AdminError, type AdminRoutes, bodyAs, type Caller, page, parameter, queried } from '../../admin/index.ts'
import type { Approvals } from './approvals.ts'
import type { Decisions } from './decisions.ts'
import type { Approval } from './store/events.ts'
import type { WholeArguments } from './store/whole-arguments.ts'
import { type ArgumentsView, approvalView } from './view.ts'

/** `{reason, argsSha256}`, each optional. */
export const decisionSchema = Type.Object(
  {
    reason: Type.Optional(Type.String({ maxLength: 1024 })),
    argsSha256: Type.Optional(
      Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Needed to approve a truncated preview.' }),
    ),
  },
  { additionalProperties: false },
)

/** `{reason, argsSha256, scope}`, each optional. */
export const approveSchema = Type.Object(
  {
    ...decisionSchema.properties,
    scope: Type.Optional(
      Type.Enum(['call', 'session'], {
        type: 'string',
        description:
          '`session`: later calls of the same tool in this session pass too, under the same rule, whatever their arguments.',
      }),
    ),
  },
  { additionalProperties: false },
)

export interface ApprovalRoutesOptions {
  readonly approvals: Approvals
  /** `adminAuth.devTokenApprovers`: the static token can approve. */
  readonly devTokenApprovers: boolean
  readonly decisions: Decisions
  readonly whole: Pick<WholeArguments, 'has' | 'get'>
  readonly forSessions: AdminRoutes
}

/** `/v1/approvals`: list, get, whole arguments, approve, deny. */
export function createApprovalRoutes({
  approvals,
  devTokenApprovers,
  decisions,
  whole,
  forSessions,
}: ApprovalRoutesOptions): AdminRoutes {
  const found = (id: string, caller: Caller): Approval => {
    const approval = approvals.get(id)
    if (approval === null || !caller.sees(approval.question.namespace, approval.question.tenant))
      throw new AdminError('not_found', 'there is no approval with this id')
    return approval
  }
  const mayApprove = ({ byToken }: Caller) => {
    if (byToken && !devTokenApprovers) {
      throw new AdminError('forbidden', 'the static token cannot approve: adminAuth.devTokenApprovers is off')
    }
  }
  return {
    mount(context) {
      forSessions.mount(context)
      context.on('GET /v1/approvals', async ({ query }, _reply, caller) => {
        const seen = approvals.list().filter(({ question }) => caller.sees(question.namespace, question.tenant))
        return page(
          seen.filter(wanted(query)).map((approval) => approvalView(approval, whole)),
          query,
        )
      })
      context.on('GET /v1/approvals/:id', async ({ params }, _reply, caller) =>
        approvalView(found(parameter(params, 'id'), caller), whole),
      )
      context.on('GET /v1/approvals/:id/arguments', async ({ params }, _reply, caller): Promise<ArgumentsView> => {
        const { id, namespace, tenant, argsSha256 } = found(parameter(params, 'id'), caller).question
        caller.demand(namespace, tenant)
        const text = whole.get(id)
        if (text === null)
          throw new AdminError('not_found', 'the whole arguments of this approval are not stored: see approvalPreview')
        return { id, argsSha256, text }
      })
      for (const verdict of ['approve', 'deny'] as const) {
        context.on(`POST /v1/approvals/:id/${verdict}`, async (request, _reply, caller) => {
          if (verdict === 'approve') mayApprove(caller)
          const { id, namespace, tenant } = found(parameter(request.params, 'id'), caller).question
          caller.demand(namespace, tenant)
          const { reason = '', argsSha256, scope } = bodyOf(verdict, request.body ?? {})
          return decisions.decide(id, {
            by: caller.by,
            person: caller.principal.person,
            groups: caller.principal.groups,
            verdict,
            reason,
            argsSha256,
            ...(scope === 'session' && { scope }),
          })
        })
      }
    },
  }
}

function bodyOf(verdict: 'approve' | 'deny', body: unknown): Static<typeof approveSchema> {
  return bodyAs(verdict === 'approve' ? approveSchema : decisionSchema, body)
}

/** Filters by `state`, `namespace`, `agent` and `session` of the query. */
function wanted(query: unknown): (approval: Approval) => boolean {
  const state = queried(query, 'state')
  const names = (['namespace', 'agent', 'session'] as const).map((name) => [name, queried(query, name)] as const)
  return (approval) =>
    (state === null || approval.state === state) &&
    names.every(([name, value]) => value === null || approval.question[name] === value)
}
