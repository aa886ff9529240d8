import type { RuleEntry } from '@plat/resources/rendered'
import { type HoldItem, windowOf } from '@plat/state'
import type { Identity } from '../../../call/index.ts'
import type { PolicyInput } from '../policy-input.ts'

type RateLimit = NonNullable<RuleEntry['rateLimit']>

/** Rate limit item of a call that matches a rule. */
export type Rate = (input: PolicyInput) => HoldItem

/** Compiles a rule's rate limit: `count` calls per window of `seconds`, counted separately for each subject. */
export function rateOf({ count, seconds, per }: RateLimit, names: { policy: string; rule: string }): Rate {
  const prefix = `rate/${names.policy}/${names.rule}/`
  const subject = subjects[per]
  const limit = `the limit of ${count} calls in ${seconds} s of each ${per} (rule ${names.rule} of policy ${names.policy})`
  // Consecutive calls mostly have the same subject, and all of a window share an item.
  let known: { readonly who: string; readonly index: number; readonly item: HoldItem } | null = null
  return ({ identity, now }) => {
    const who = subject(identity)
    const index = Math.floor(now / (seconds * 1000))
    if (known?.who === who && known.index === index) return known.item
    // `join` builds one flat string, which records serialize faster.
    const item = {
      key: [prefix, who].join(''),
      window: windowOf(now, seconds),
      cap: count,
      amount: 1,
      unit: 'calls',
      limit,
    } as const
    known = { who, index, item }
    return item
  }
}

const subjects: Readonly<Record<RateLimit['per'], (identity: Identity) => string>> = {
  session: ({ namespace, agent, session }) => `${namespace}/${agent}/${session}`,
  agent: ({ namespace, agent }) => `${namespace}/${agent}`,
  // Calls without a user share one count, so that omitting the user does not evade the limit.
  user: ({ user }) => user ?? '',
  namespace: ({ namespace }) => namespace,
}
