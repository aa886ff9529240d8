import type { RuleEntry } from '@plat/resources/rendered'
import { type HoldItem, windowOf } from '@plat/state'
import type { Identity } from '../../../call/index.ts'
import type { PolicyInput } from '../question.ts'

type RateLimit = NonNullable<RuleEntry['rateLimit']>

/** What one call takes of the rate limit of a rule that matches it. */
export type Rate = (input: PolicyInput) => HoldItem

/** Makes a rule's rate limit ready: `count` calls in each window of `seconds`, counted apart for each subject. */
export function rateOf({ count, seconds, per }: RateLimit, names: { policy: string; rule: string }): Rate {
  const prefix = `rate/${names.policy}/${names.rule}/`
  const subject = subjects[per]
  return ({ identity, now }) => ({
    // Joined, the text lies in one piece, as the record that says it asks for.
    key: [prefix, subject(identity)].join(''),
    window: windowOf(now, seconds),
    cap: count,
    amount: 1,
    unit: 'calls',
  })
}

const subjects: Readonly<Record<RateLimit['per'], (identity: Identity) => string>> = {
  session: ({ namespace, agent, session }) => `${namespace}/${agent}/${session}`,
  agent: ({ namespace, agent }) => `${namespace}/${agent}`,
  // Calls without a user are counted together, so that leaving the user out is no way around the limit.
  user: ({ user }) => user ?? '',
  namespace: ({ namespace }) => namespace,
}
