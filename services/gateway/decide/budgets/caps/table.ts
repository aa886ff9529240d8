import type { Identity } from '../../../call/index.ts'
import { type Applied, Budget, type Cap } from './budget.ts'
import { anyOf } from './match.ts'
import { type Each, Template } from './template.ts'

/** Selects callers. An absent key matches all callers; values of a key are ORed, keys are ANDed. */
export interface Match {
  readonly namespaces?: readonly string[]
  /** `<agent>` or `<namespace>/<agent>`. */
  readonly agents?: readonly string[]
  /** `<user>`, or `<issuer>#<user>`. */
  readonly users?: readonly string[]
  readonly groups?: readonly string[]
}

/** A cap with its selector. */
export interface Selecting {
  readonly cap: Cap
  readonly match: Match
  /** Present: each of these has the cap separately. */
  readonly each?: Each
}

type Caller = Pick<Identity, 'tenant' | 'namespace' | 'agent' | 'session' | 'user' | 'issuer' | 'groups'>
type Matcher = (caller: Caller) => boolean

interface Entry {
  readonly counting: Budget | Template
  readonly matches: Matcher
}

/** Budgets of a caller; those of models depend on the call. */
interface Found {
  readonly always: readonly Applied[]
  readonly byModel: readonly Template[]
}

/** Budgets by plain name, for each of the four keys. */
type BudgetsByName = Map<string, Entry[]>

/** An immutable set of budgets and templates. The result of a caller's lookup is cached for the lifetime of its identity. */
export class BudgetTable {
  /** ISO 4217 currency of the caps; null: that of the prices. */
  readonly currency: string | null
  readonly budgets: readonly Budget[]
  readonly templates: readonly Template[]
  /** Keyed by agent name, or by `<namespace>/<name>` if the budget names namespaces. */
  readonly #agents: BudgetsByName = new Map()
  readonly #users: BudgetsByName = new Map()
  readonly #groups: BudgetsByName = new Map()
  readonly #namespaces: BudgetsByName = new Map()
  /** Budgets selected by patterns only, or by nothing. */
  readonly #others: Entry[] = []
  readonly #order: ReadonlyMap<Budget | Template, number>
  readonly #found = new WeakMap<Caller, Found>()

  constructor(currency: string | null, entries: readonly Selecting[]) {
    this.currency = currency
    const all = entries.map(({ cap, match, each }) => ({
      counting: each === undefined ? new Budget(cap) : new Template(cap, each),
      matches: matcherOf(match),
      match,
    }))
    const counting = all.map((entry) => entry.counting)
    this.budgets = counting.filter((one) => one instanceof Budget)
    this.templates = counting.filter((one) => one instanceof Template)
    this.#order = new Map(counting.map((one, at) => [one, at]))
    for (const entry of all) this.#addToIndex(entry, entry.match)
  }

  /**
   * Returns the budgets that apply to a call, in the order of their definition, those of models last. `model`: `<provider>/<model>`; null: the call
   * of a tool.
   */
  matching(caller: Caller, model: string | null = null): readonly Applied[] {
    if (this.#order.size === 0) return NONE
    let found = this.#found.get(caller)
    if (found === undefined) {
      found = this.#find(caller)
      this.#found.set(caller, found)
    }
    if (model === null || found.byModel.length === 0) return found.always
    return [...found.always, ...found.byModel.flatMap((template) => template.appliedTo(caller, model))]
  }

  #find(caller: Caller): Found {
    const { namespace, agent, groups } = caller
    const may = new Set<Entry>(this.#others)
    const add = (index: BudgetsByName, name: string) => {
      for (const entry of index.get(name) ?? []) may.add(entry)
    }
    add(this.#agents, agent)
    add(this.#agents, `${namespace}/${agent}`)
    for (const user of userNames(caller)) add(this.#users, user)
    for (const group of groups) add(this.#groups, group)
    add(this.#namespaces, namespace)
    const found = [...may].filter(({ matches }) => matches(caller)).map(({ counting }) => counting)
    found.sort((one, other) => (this.#order.get(one) ?? 0) - (this.#order.get(other) ?? 0))
    const always = found.flatMap((one) =>
      one instanceof Template ? one.appliedTo(caller, null) : one.appliedTo(caller),
    )
    return { always, byModel: found.filter((one) => one instanceof Template).filter(({ per }) => per === 'model') }
  }

  /** Indexes an entry by the plain names of its most specific key. */
  #addToIndex(entry: Entry, { agents, users, groups, namespaces }: Match): void {
    if (isPlain(agents)) {
      for (const agent of agents) for (const name of namesOf(agent, namespaces)) put(this.#agents, name, entry)
    } else if (isPlain(users)) for (const user of users) put(this.#users, user, entry)
    else if (isPlain(groups)) for (const group of groups) put(this.#groups, group, entry)
    else if (isPlain(namespaces)) for (const namespace of namespaces) put(this.#namespaces, namespace, entry)
    else this.#others.push(entry)
  }
}

const NONE: readonly Applied[] = []

/** Returns the names qualified with plain namespaces, so that equal agent names of many namespaces do not share one bucket. */
function namesOf(agent: string, namespaces: readonly string[] | undefined): readonly string[] {
  if (agent.includes('/') || !isPlain(namespaces)) return [agent]
  return namespaces.map((namespace) => `${namespace}/${agent}`)
}

/** Returns the names of the caller's user; none without a user. */
function userNames({ user, issuer }: Caller): readonly string[] {
  return user === null ? [] : [user, `${issuer}#${user}`]
}

function put(index: BudgetsByName, name: string, entry: Entry): void {
  const entries = index.get(name)
  if (entries === undefined) index.set(name, [entry])
  else entries.push(entry)
}

function isPlain(names: readonly string[] | undefined): names is readonly string[] {
  return names?.every((name) => !name.includes('*')) === true
}

function matcherOf({ namespaces, agents, users, groups }: Match): Matcher {
  const ofNamespace = anyOf(namespaces)
  const ofName = anyOf(agents?.filter((agent) => !agent.includes('/')))
  const ofFullName = anyOf(agents?.filter((agent) => agent.includes('/')))
  const ofUser = anyOf(users)
  const ofGroup = anyOf(groups)
  return (caller) =>
    ofNamespace(caller.namespace) &&
    (ofName(caller.agent) || ofFullName(`${caller.namespace}/${caller.agent}`)) &&
    (users === undefined || userNames(caller).some(ofUser)) &&
    (groups === undefined || caller.groups.some(ofGroup))
}
