import { type HoldItem, windowOf } from '@plat/state'
import { type Denial, deny, type Identity } from '../../call/index.ts'
import type { TierResult } from './plan/tiers.ts'

/** One entry of `infra.budgets`. */
export interface InfraBudget {
  readonly resourcesPerHour?: number
  readonly maxTier?: number
}

export interface InfraBudgetsConfig {
  readonly perSession: InfraBudget
  /** By `<namespace>/<agent>` or the agent's name; `*` for all others. */
  readonly perAgent: Readonly<Record<string, InfraBudget>>
}

const HOUR_SECONDS = 3_600

/** A budget with its counter name. */
interface Applied {
  readonly at: string
  readonly key: string
  readonly budget: InfraBudget
}

/** Returns why a plan exceeds the caller's budgets in any case, or null. */
export function budgetFault(
  config: InfraBudgetsConfig,
  caller: Identity,
  { tier, resources }: TierResult,
): Denial | null {
  for (const { at, budget } of appliedTo(config, caller)) {
    const { maxTier, resourcesPerHour } = budget
    if (maxTier !== undefined && tier > maxTier)
      return deny('policy_denied', `the plan is of tier ${tier}, and ${at}.maxTier is ${maxTier}`)
    if (resourcesPerHour !== undefined && resources > resourcesPerHour)
      return deny(
        'budget_exceeded',
        `the plan changes ${resources} resources, and ${at}.resourcesPerHour is ${resourcesPerHour}`,
      )
  }
  return null
}

/** Reservations of an apply in the caller's budgets. `now`: milliseconds since the epoch. */
export function holdsOf(
  config: InfraBudgetsConfig,
  caller: Identity,
  { resources }: TierResult,
  now: number,
): readonly HoldItem[] {
  if (resources === 0) return []
  const window = windowOf(now, HOUR_SECONDS)
  return appliedTo(config, caller).flatMap(({ at, key, budget: { resourcesPerHour: cap } }) => {
    const limit = `the limit of ${cap} resources an hour (${at}.resourcesPerHour)`
    return cap === undefined ? [] : [{ key, window, cap, amount: resources, unit: 'calls' as const, limit }]
  })
}

function appliedTo({ perSession, perAgent }: InfraBudgetsConfig, caller: Identity): readonly Applied[] {
  const { namespace, agent, session } = caller
  const own = [`${namespace}/${agent}`, agent, '*'].find((name) => Object.hasOwn(perAgent, name))
  const budget = own === undefined ? undefined : perAgent[own]
  const key = ['infra/session', namespace, agent, session].join('/')
  return [
    { at: 'infra.budgets.perSession', key, budget: perSession },
    ...(budget === undefined
      ? []
      : [{ at: `infra.budgets.perAgent.${own}`, key: ['infra/agent', namespace, agent].join('/'), budget }]),
  ]
}
