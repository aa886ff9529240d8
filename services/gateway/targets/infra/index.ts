import { hash } from 'node:crypto'
import { type Clock, glob, rfc3339 } from '@plat/core'
import Type from 'typebox'
import { Check } from 'typebox/value'
import {
  type Body,
  type Call,
  type CallRequirements,
  type Denial,
  deny,
  type Identity,
  isDenial,
  type Target,
  unresolved,
} from '../../call/index.ts'
import { type Stage, stage } from '../../pipeline/stage.ts'
import { type Authorization, openAuthorization, type Seals, sealAuthorization } from './authorization.ts'
import { budgetFault, holdsOf } from './budgets.ts'
import type { InfraConfig } from './config.ts'
import { readPlan } from './plan/plan.ts'
import { type TierResult, Tiers } from './plan/tiers.ts'
import { planResponse, previewOf, reasonOf } from './results.ts'

export type { Seals } from './authorization.ts'
export type { InfraConfig } from './config.ts'

/** Server name in policies, and second half of the scope. */
const SERVER = 'plat-infra'

/** Operations: evaluate a plan, request its authorization, or verify one. */
export type InfraTool = 'plan' | 'apply' | 'verify'

export interface InfraParts {
  readonly config: InfraConfig
  readonly seals: Seals
  /** Returns the scopes that a caller lacks, or null. */
  readonly missingScopes: (identity: Identity, server: string, tool: string) => string | null
  readonly clock: Clock
}

/** A JSON response. */
export interface InfraResponse {
  readonly status: number
  readonly value: object
}

/** Governance of infrastructure plans (docs/spec/gateway.md, `infra`). */
export interface InfraFeature {
  readonly stage: Stage<'resolve', 'identity', 'target'>
  /** Responds to a call that passed all stages. */
  answer(call: Pick<Call<'identity'>, 'name' | 'body' | 'facts'>): Promise<InfraResponse | Denial>
}

/** Returns null if it is not enabled. */
export function createInfra(parts: InfraParts): InfraFeature | null {
  if (!parts.config.enabled) return null
  const desk = new PlanReview(parts)
  return {
    stage: stage({
      name: 'resolve',
      needs: ['identity'],
      gives: ['target'],
      skipped: { target: unresolved },
      async admit(call) {
        const tool = toolOf(call.name)
        const scope = parts.missingScopes(call.facts.identity, SERVER, tool)
        if (scope !== null) return deny('insufficient_scope', `scope ${scope} is required`, { data: { scope } })
        const asks = await desk.judge(tool, call)
        return isDenial(asks) ? asks : { target: targetOf(tool, asks) }
      },
    }),
    answer: (call) => desk.answer(toolOf(call.name), call),
  }
}

function toolOf(name: string | null): InfraTool {
  return name === 'apply' || name === 'verify' ? name : 'plan'
}

/** The response is the gateway's own evaluation and contains no foreign content. */
function targetOf(tool: InfraTool, requirements: CallRequirements | null): Target {
  const target = {
    ...unresolved,
    key: SERVER,
    server: SERVER,
    tool,
    trust: 'trusted',
    dataClass: 'internal',
    builtin: true,
  } as const
  return requirements === null ? target : { ...target, requirements }
}

const verification = Type.Object(
  { authorization: Type.String({ minLength: 1 }), planSha256: Type.String({ pattern: '^[0-9a-f]{64}$' }) },
  { additionalProperties: false },
)

type PlanCall = Pick<Call<'identity'>, 'body' | 'facts'>

class PlanReview {
  readonly #parts: InfraParts
  readonly #tiers: Tiers
  readonly #denied: readonly ((type: string) => boolean)[]
  /** A plan is evaluated once, though it is needed before and after an approval. */
  readonly #judged = new WeakMap<Body, TierResult | string>()

  constructor(parts: InfraParts) {
    this.#parts = parts
    this.#tiers = new Tiers(parts.config.tiers)
    this.#denied = parts.config.denyTypes.map(glob)
  }

  /** Returns requirements beyond policy, or null. Refuses forbidden plans before an approval is requested. */
  async judge(tool: InfraTool, call: PlanCall): Promise<CallRequirements | Denial | null> {
    if (tool === 'verify') {
      const found = this.#openAuthorization(call)
      return isDenial(found) ? found : null
    }
    const judgement = await this.#judgement(call)
    if (isDenial(judgement)) return judgement
    return tool === 'plan' ? null : (this.#fault(judgement, call) ?? this.#asks(judgement, call))
  }

  async answer(tool: InfraTool, call: PlanCall): Promise<InfraResponse | Denial> {
    if (tool === 'verify') {
      const found = this.#openAuthorization(call)
      return isDenial(found) ? found : { status: 200, value: authorized(found) }
    }
    const judgement = await this.#judgement(call)
    if (isDenial(judgement)) return judgement
    const planSha256 = hashOf(call)
    if (tool === 'plan')
      return { status: 200, value: { planSha256, ...planResponse(judgement), ...this.#prospect(judgement, call) } }
    const { clock, config, seals } = this.#parts
    const { tier, resources } = judgement
    const expiresAt = clock.now() + config.authorizationTTLSeconds * 1000
    const given = { planSha256, tier, resources, expiresAt }
    const authorization = sealAuthorization(seals, call.facts.identity, given)
    return { status: 201, value: { authorization, ...authorized(given) } }
  }

  async #judgement({ body }: PlanCall): Promise<TierResult | Denial> {
    if (body === null) return deny('internal', 'the request was not read')
    const known = this.#judged.get(body) ?? (await this.#read(body))
    return typeof known === 'string' ? deny('invalid_request', known) : known
  }

  async #read(body: Body): Promise<TierResult | string> {
    const plan = await readPlan(body.value)
    const judgement = typeof plan === 'string' ? plan : await this.#tiers.judge(plan)
    this.#judged.set(body, judgement)
    return judgement
  }

  /** Returns why this caller must not apply a plan, even with an approval, or null. */
  #fault(judgement: TierResult, { facts: { identity } }: PlanCall): Denial | null {
    const { maxTier, budgets } = this.#parts.config
    if (judgement.types.values().some((type) => this.#denied.some((matches) => matches(type))))
      return deny('policy_denied', 'infra.denyTypes names the type of a resource of the plan')
    const { tier } = judgement
    if (tier > maxTier) return deny('policy_denied', `the plan is of tier ${tier}, and infra.maxTier is ${maxTier}`)
    return budgetFault(budgets, identity, judgement)
  }

  #asks(judgement: TierResult, { facts: { identity } }: PlanCall): CallRequirements {
    const { config, clock } = this.#parts
    return {
      approval: this.#needsPerson(judgement) ? reasonOf(judgement) : null,
      presentedArguments: previewOf(judgement),
      holds: holdsOf(config.budgets, identity, judgement, clock.now()),
    }
  }

  #needsPerson({ tier }: TierResult): boolean {
    return tier >= this.#parts.config.requireApprovalAtTier
  }

  /** Predicts the result of an apply request, as far as this feature decides. */
  #prospect(judgement: TierResult, call: PlanCall): object {
    const fault = this.#fault(judgement, call)
    if (fault !== null) return { apply: 'denied', reason: fault.reason }
    return { apply: this.#needsPerson(judgement) ? 'approval' : 'allowed' }
  }

  #openAuthorization({ body, facts: { identity } }: PlanCall): Authorization | Denial {
    const value: unknown = body?.value
    if (!Check(verification, value))
      return deny('invalid_request', 'the body must be {"authorization": "<text>", "planSha256": "<64 hex digits>"}')
    const found = openAuthorization(this.#parts.seals, identity, value.authorization, this.#parts.clock.now())
    if (found === null) return deny('not_found', 'this session has no such authorization, or it has expired')
    return found.planSha256 === value.planSha256 ? found : deny('forbidden', 'the authorization is for another plan')
  }
}

function authorized({ expiresAt, ...given }: Authorization): object {
  return { ...given, expiresAt: rfc3339(expiresAt) }
}

function hashOf({ body }: PlanCall): string {
  return hash('sha256', body?.bytes ?? '', 'hex')
}
