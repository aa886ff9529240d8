import type { BudgetEntry } from '@plat/resources/rendered'
import { type Identity, namesOfKey, subjectsOf } from '../../../call/index.ts'
import { type Applied, Budget, type Cap } from './budget.ts'
import { anyOf } from './match.ts'

/** Whose counts a template keeps, and whose caps differ. */
export interface Each {
  readonly per: NonNullable<BudgetEntry['per']>
  /** Only these have the cap; null: all. */
  readonly names: readonly string[] | null
  /** Other amounts: the first entry that names a subject applies. */
  readonly except: NonNullable<BudgetEntry['except']>
}

type Caller = Pick<Identity, 'tenant' | 'namespace' | 'agent' | 'session' | 'user' | 'groups'>
type Names = (text: string) => boolean

/** A cap that each user, group, agent, session or model has separately. */
export class Template {
  readonly per: Each['per']
  /** The budget of those without an exception. */
  readonly budget: Budget
  readonly #selects: Names
  readonly #exceptions: readonly { readonly matches: Names; readonly budget: Budget }[]

  constructor(cap: Cap, { per, names, except }: Each) {
    this.per = per
    this.budget = new Budget(cap)
    this.#selects = anyOf(names ?? undefined)
    this.#exceptions = except.map(({ names, amount }) => ({
      matches: anyOf(names),
      budget: new Budget({ ...cap, amount }),
    }))
  }

  /** Returns the budgets of the subjects of a call. `model`: `<provider>/<model>`; null: a call of a tool, which a budget of models does not limit. */
  appliedTo(caller: Caller, model: string | null): readonly Applied[] {
    if (this.per === 'model' && model === null) return []
    return subjectsOf(this.per, caller, model)
      .filter(({ names }) => names.some(this.#selects))
      .map(({ key, names, words }) => ({
        budget: this.#exceptions.find(({ matches }) => names.some(matches))?.budget ?? this.budget,
        key: [this.budget.prefix, key].join('/'),
        whose: words,
      }))
  }

  /** Returns the cap of a counted subject, by its part of the key. */
  budgetOf(subject: string): Budget {
    const names = namesOfKey(this.per, subject)
    return this.#exceptions.find(({ matches }) => names.some(matches))?.budget ?? this.budget
  }
}
