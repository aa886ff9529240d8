import { type Clock, canonicalJson, rfc3339Micros } from '@plat/core'
import { loadCedar } from '@plat/resources/cedar'
import { Type } from 'typebox'
import { AdminError, type AdminRoutes, bodyAs } from '../../../admin/index.ts'
import type { PolicySet } from '../compile.ts'
import { decodePolicies } from '../decode.ts'
import { judge } from '../judge.ts'
import { CandidatePolicies } from './candidate.ts'
import { type SimulateParts, simulate } from './simulate.ts'
import { type TryParts, tryBody, tryCall } from './try-call.ts'
import type { Comparison } from './view.ts'

/** Records per page. */
const PAGE = { usual: 2_000, most: 10_000 } as const
/** Maximum number of reported problems. */
const MAX_PROBLEMS = 20

const time = () => Type.Optional(Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT.{5,30}$' }))

export const simulateBody = Type.Object(
  {
    /** Format `policyFile`. */
    policies: Type.Object({}),
    since: time(),
    until: time(),
    agent: Type.Optional(Type.String({ pattern: '^[^/]{1,2048}/[^/]{1,2048}$' })),
    show: Type.Optional(
      Type.Array(Type.Enum(['same', 'changed', 'needs_arguments'], { type: 'string' }), { maxItems: 3 }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE.most })),
    cursor: Type.Optional(Type.String({ pattern: '^\\d{1,15}$' })),
  },
  { additionalProperties: false },
)

const EVERYTHING: readonly Comparison[] = ['same', 'changed', 'needs_arguments']

export interface SimulationParts extends SimulateParts, Pick<TryParts, 'targetOf'> {
  readonly inForce: () => PolicySet
  readonly clock: Pick<Clock, 'now'>
}

/** `POST /v1/policies/simulate` and `…/try`: evaluates recorded calls by policies that are not in force, and calls that are not made. */
export function createSimulation(parts: SimulationParts): { readonly routes: AdminRoutes } {
  const candidates = new Candidates()
  return {
    routes: {
      mount(context) {
        context.on('POST /v1/policies/simulate', async ({ body, query }, _reply, caller) => {
          const request = bodyAs(simulateBody, body)
          const tenant = caller.tenant(query)
          const auditPath = parts.ledgerOf(tenant)
          if (auditPath === null)
            throw new AdminError('not_found', 'there is no such tenant, or you have no role in it')
          const { since, until, agent = null, show = EVERYTHING, limit = PAGE.usual, cursor } = request
          const from = cursor === undefined ? momentOf('since', since) : Number(cursor)
          const to = momentOf('until', until)
          const candidate = await candidates.of(request.policies)
          const sees = (namespace: string) => caller.sees(namespace, tenant)
          const range = { from: from ?? 0, to, isFirst: cursor === undefined, limit }
          const replay = { ...range, agent, show: new Set(show), sees, auditPath }
          return await simulate(candidate, replay, parts)
        })
        context.on('POST /v1/policies/try', async ({ body }, _reply, caller) => {
          const { policies, ...call } = bodyAs(tryBody, body)
          if (!caller.sees(call.namespace))
            throw new AdminError('not_found', 'there is no such namespace, or you have no role in it')
          const candidate = policies === undefined ? null : await candidates.of(policies)
          const now = parts.clock.now()
          return tryCall(call, {
            ...{ targetOf: parts.targetOf, now },
            judge: (input) => candidate?.judge(input) ?? { decision: judge(parts.inForce(), input), possible: [] },
          })
        })
      },
    },
  }
}

/** Caches the last candidate, because clients send it with every page. */
class Candidates {
  #text = ''
  #last: CandidatePolicies | null = null

  async of(policies: object): Promise<CandidatePolicies> {
    const text = canonicalJson(policies)
    if (this.#last !== null && text === this.#text) return this.#last
    const decoded = decodePolicies(Buffer.from(text))
    if (!decoded.ok) throw refused(decoded.problems)
    const needsCedar = decoded.file.policies.some(({ cedar }) => cedar !== '')
    const compiled = CandidatePolicies.compile(decoded.file, needsCedar ? await loadCedar() : null)
    if (!(compiled instanceof CandidatePolicies)) throw refused(compiled)
    this.#text = text
    this.#last = compiled
    return compiled
  }
}

function refused(problems: readonly string[]): AdminError {
  return new AdminError('invalid_request', `policies: ${problems.slice(0, MAX_PROBLEMS).join('; ')}`)
}

function momentOf(name: 'since' | 'until', text: string | undefined): { readonly at: string } | null {
  if (text === undefined) return null
  const moment = Date.parse(text)
  if (Number.isNaN(moment)) throw new AdminError('invalid_request', `${name}: must be an RFC 3339 time`)
  return { at: rfc3339Micros(moment) }
}
