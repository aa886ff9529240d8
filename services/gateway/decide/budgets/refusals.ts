import { rfc3339 } from '@plat/core'
import { type HoldItem, type Short, windowEnd } from '@plat/state'
import { type Denial, deny, type MediaUse, type ModelDemand } from '../../call/index.ts'
import { BudgetItem } from './caps/budget.ts'

/** Denial for a used-up budget, with the amount left and the start of the next window. `now`: milliseconds since the epoch. */
export function budgetUsedUp(
  { budget: { id, unit, source, window }, whose }: BudgetItem,
  { left, resetsAt }: Short,
  { currency, now }: { readonly currency: string; readonly now: number },
): Denial {
  const amount = unit === 'micros' ? `${(left / 1e6).toFixed(6)} ${currency}` : `${left} tokens`
  const subject = whose ?? (window === 'session' ? 'this session' : null)
  const name = source === null ? "the session's budget" : `the budget ${id}${subject === null ? '' : ` of ${subject}`}`
  const until = resetsAt === null ? '' : `; it resets at ${rfc3339(resetsAt)}`
  const verb = unit === 'micros' ? 'cost' : 'use'
  return deny('budget_exceeded', `the call may ${verb} more than the ${amount} left of ${name}${until}`, {
    retryAfterMs: waitOf(resetsAt, now),
  })
}

/** Denial for a used-up policy rate, tokens per minute, or limit of a built-in server. `now`: milliseconds since the epoch. */
export function limitUsedUp(
  item: HoldItem | undefined,
  { key, resetsAt }: Short,
  { policy, rule, now }: Pick<Denial, 'policy' | 'rule'> & { readonly now: number },
): Denial {
  const until = resetsAt === null ? '' : ` until ${rfc3339(resetsAt)}`
  return deny('rate_limited', `${item?.limit ?? `the limit ${key}`} is used up${until}`, {
    policy,
    rule,
    retryAfterMs: waitOf(resetsAt, now),
  })
}

/** Denial for a call that exceeds the limit of a whole minute. */
export function beyondMinute({ inputTokens, tokensPerMinute }: ModelDemand): Denial {
  const reason = `the prompt may have ${inputTokens} tokens, and the model route allows ${tokensPerMinute} a minute (tokensPerMinute)`
  return deny('rate_limited', reason)
}

export function unpriced({ priced: { key }, options }: ModelDemand): Denial {
  const selected = options.length === 0 ? '' : ` with ${options.join(', ')}`
  return deny('price_unknown', `no price is known for ${key}${selected}, and the call has a budget`)
}

const KEY_OF_UNIT: Readonly<Record<MediaUse['unit'], string>> = {
  images: 'perImage',
  characters: 'characters',
  seconds: 'perMinute',
}

export function unpricedMedia({ priced: { key } }: ModelDemand, unit: MediaUse['unit']): Denial {
  const reason = `no price of ${unit} is known for ${key} (${KEY_OF_UNIT[unit]} in its price), and the call has a budget`
  return deny('price_unknown', reason)
}

export function unboundedSound({ priced: { key } }: ModelDemand): Denial {
  const reason = `nothing bounds how long this sound is, and the call has a budget: send WAV without compression, or state maxMinutes in the price of ${key}`
  return deny('price_unknown', reason)
}

/** Denial for a call whose tokens nothing bounds. The context window bounds those of images, documents and stored responses, if it is known. */
export function unbounded({ openEnd, priced: { key } }: ModelDemand): Denial {
  const reason =
    openEnd === null
      ? `nothing bounds what images, documents and stored responses cost, and the call has a budget: set contextTokens in the price of ${key} or in the route`
      : `nothing bounds what ${openEnd} costs, and the call has a budget: leave it out of the request, remove it from providerTools of the route, or use an agent without a budget`
  return deny('price_unknown', reason)
}

/** Denial for budgets and prices in different currencies. */
export function foreignBudgets(budgets: string, prices: string): Denial {
  return deny('price_unknown', `the prices are in ${prices}, but the budgets of the call in ${budgets}`)
}

/** Denial while budgets are not loaded: calls with a cost cannot be limited. */
export function unreadBudgets(): Denial {
  return deny('state_unavailable', 'budgets are not loaded yet')
}

/** Denial while shared counters are unreachable. */
export function uncounted(): Denial {
  return deny('state_unavailable', 'the budgets of this call cannot be counted now')
}

/** Denial for a caller whose calls hold, or wait for, as much as its share allows. */
export function tooManyHolds(): Denial {
  return deny('backlog_full', 'too many calls of this caller hold budgets or rates', { retryAfterMs: HOLDS_RETRY_MS })
}

/** Denial for a counter that has no room in the share of its template. */
export function tooManyCounters(item: HoldItem, zone: string, now: number): Denial {
  const { window, limit, template } = item
  const end = windowEnd(window, zone)
  const until = end === null ? '' : ` until ${rfc3339(end)}`
  const name = item instanceof BudgetItem ? `the budget ${item.budget.id}` : (limit ?? `the limit ${template}`)
  const reason = `${name} has no room for one more counter${until}: too many names are counted`
  return deny('backlog_full', reason, { retryAfterMs: waitOf(end, now) })
}

/** Denial for a caller that templates count under too many names. */
export function tooManySubjects(): Denial {
  const reason = `the caller counts in more than ${MAX_COUNTERS} budgets and rates: select fewer of its groups with names of the template`
  return deny('budget_exceeded', reason)
}

/** Maximum number of counters of one call. */
export const MAX_COUNTERS = 64

const HOLDS_RETRY_MS = 1_000

function waitOf(resetsAt: number | null, now: number): number | null {
  return resetsAt === null ? null : Math.max(0, resetsAt - now)
}
