import type { RuleEntry } from '@plat/resources/rendered'
import { type HoldItem, windowOf } from '@plat/state'
import type { Identity } from '../../../call/index.ts'
import type { PolicyInput } from '../policy-input.ts'

type RateLimit = NonNullable<RuleEntry['rateLimit']>

/** What one call takes of the rate limit of a rule that matches it. */
export type Rate = (input: PolicyInput) => HoldItem

/** Makes a rule's rate limit ready: `count` calls in each window of `seconds`, counted apart for each subject. */
export function rateOf({ count, seconds, per }: RateLimit, names: { policy: string; rule: string }): Rate {
  const prefix = `rate/${names.policy}/${names.rule}/`
  const subject = subjects[per]
  // Calls of one subject mostly follow each other, and all of a window take the same.
  let known: { readonly who: string; readonly index: number; readonly item: HoldItem } | null = null
  return ({ identity, now }) => {
    const who = subject(identity)
    const index = Math.floor(now / (seconds * 1000))
    if (known?.who === who && known.index === index) return known.item
    // Joined, the text lies in one piece, as the record that says it asks for.
    const item = {
      key: [prefix, who].join(''),
      window: windowOf(now, seconds),
      cap: count,
      amount: 1,
      unit: 'calls',
    } as const
    known = { who, index, item }
    return item
  }
}

const subjects: Readonly<Record<RateLimit['per'], (identity: Identity) => string>> = {
  session: ({ namespace, agent, session }) => `${namespace}/${agent}/${session}`,
  agent: ({ namespace, agent }) => `${namespace}/${agent}`,
  // Calls without a user are counted together, so that leaving the user out is no way around the limit.
  user: ({ user }) => user ?? '',
  namespace: ({ namespace }) => namespace,
}
