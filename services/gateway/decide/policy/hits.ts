import { type Clock, rfc3339 } from '@plat/core'
import type { Decision } from '../../call/index.ts'
import type { PolicySet } from './compile.ts'

/** How often a rule decided calls on this gateway. */
export interface RuleHits {
  readonly hits: number
  /** RFC 3339: counted from then on. */
  readonly since: string
}

interface Counter {
  hits: number
  readonly since: number
}

/** Calls that each rule in force has decided on this gateway. A rule that remains under its name keeps its count when policies are reloaded. */
export class HitCounts {
  readonly #clock: Pick<Clock, 'now'>
  /** By policy and rule; null: no rule matched, so the default decided. */
  #counters = new Map<string, Map<string | null, Counter>>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** Counts the decision of a call. Other names than those of policies in force are not counted, so that the counters have a limit. */
  count({ policy, rule }: Pick<Decision, 'policy' | 'rule'>): void {
    const counter = policy === null ? undefined : this.#counters.get(policy)?.get(rule)
    if (counter !== undefined) counter.hits++
  }

  /** Called when policies come into force. */
  keep({ entries }: Pick<PolicySet, 'entries'>): void {
    const before = this.#counters
    const since = this.#clock.now()
    this.#counters = new Map(
      entries.map(({ name, rules }) => {
        const known = before.get(name)
        const names = [null, ...rules.map((rule) => rule.name)]
        return [name, new Map(names.map((rule) => [rule, known?.get(rule) ?? { hits: 0, since }]))]
      }),
    )
  }

  /** Returns the count of a rule in force; null: of the default. */
  of(policy: string, rule: string | null): RuleHits {
    const { hits, since } = this.#counters.get(policy)?.get(rule) ?? { hits: 0, since: this.#clock.now() }
    return { hits, since: rfc3339(since) }
  }
}
