import { glob } from '@plat/core'
import type { RuleEntry } from '@plat/resources/rendered'
import { type HoldItem, windowOf } from '@plat/state'
import { type Identity, type Subject, subjectsOf } from '../../../call/index.ts'
import type { PolicyInput } from '../policy-input.ts'

type RateLimit = NonNullable<RuleEntry['rateLimit']>

/** Rate limit items of a call that matches a rule: one for each of its subjects. */
export type Rate = (input: PolicyInput) => readonly HoldItem[]

/** Subjects that a refusal names; a caller knows its session, agent and namespace. */
const NAMED: ReadonlySet<string> = new Set(['user', 'group', 'model'])

/** Compiles a rule's rate limit: calls per window of `seconds`, counted separately for each subject. */
export function rateOf(
  { count, seconds, per, except = [] }: RateLimit,
  { policy, rule }: { readonly policy: string; readonly rule: string },
): Rate {
  const template = `rate/${policy}/${rule}`
  const exceptions = except.map(({ names, count: own }) => ({ matches: names.map(glob), own }))
  const itemOf = ({ key, names, words }: Subject, window: string): HoldItem => {
    const exception = exceptions.find(({ matches }) => matches.some((match) => names.some(match)))
    const cap = exception?.own ?? count
    const whose = NAMED.has(per) ? words : `each ${per}`
    return {
      // `join` builds one flat string, which records serialize faster.
      key: [template, key].join('/'),
      window,
      cap,
      amount: 1,
      unit: 'calls',
      limit: `the limit of ${cap} calls in ${seconds} s of ${whose} (rule ${rule} of policy ${policy})`,
      template,
    }
  }
  // Identities are cached with their tokens, and all calls of a window share the items.
  const known = new WeakMap<Identity, { readonly index: number; readonly items: readonly HoldItem[] }>()
  return ({ identity, target, tool, now }) => {
    const index = Math.floor(now / (seconds * 1000))
    const before = per === 'model' ? undefined : known.get(identity)
    if (before?.index === index) return before.items
    const model = target.kind === 'model' ? tool : null
    const items = subjectsOf(per, identity, model).map((subject) => itemOf(subject, windowOf(now, seconds)))
    if (per !== 'model') known.set(identity, { index, items })
    return items
  }
}
