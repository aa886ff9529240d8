import { glob } from '@plat/core'
import type { Identity } from '../../../call/index.ts'
import { type Applied, Budget, type Cap } from './budget.ts'

/** Whose calls a budget counts: an absent key is everybody, inside a key OR, between keys AND. */
export interface Match {
  readonly namespaces?: readonly string[]
  /** `<agent>` or `<namespace>/<agent>`. */
  readonly agents?: readonly string[]
  readonly users?: readonly string[]
  readonly groups?: readonly string[]
}

/** A cap with those that it is for. */
export interface Selecting {
  readonly cap: Cap
  readonly match: Match
}

type Caller = Pick<Identity, 'namespace' | 'agent' | 'session' | 'user' | 'groups'>
type Matcher = (caller: Caller) => boolean

interface Entry {
  readonly budget: Budget
  readonly matches: Matcher
}

/** Budgets under plain names, of each of the four keys. */
type BudgetsByName = Map<string, Entry[]>

/** All budgets at one moment. A caller meets the few that may be for it, and once: what was found is kept as long as its identity. */
export class BudgetTable {
  /** ISO 4217 of the caps; null: whatever the prices are in. */
  readonly currency: string | null
  readonly budgets: readonly Budget[]
  /** Agents by name, those of one namespace by `<namespace>/<name>`. */
  readonly #agents: BudgetsByName = new Map()
  readonly #users: BudgetsByName = new Map()
  readonly #groups: BudgetsByName = new Map()
  readonly #namespaces: BudgetsByName = new Map()
  /** Only patterns, or nothing at all, say whom these are for. */
  readonly #others: Entry[] = []
  readonly #found = new WeakMap<Caller, readonly Applied[]>()

  constructor(currency: string | null, entries: readonly Selecting[]) {
    this.currency = currency
    const all = entries.map(({ cap, match }) => ({ budget: new Budget(cap), matches: matcherOf(match), match }))
    this.budgets = all.map(({ budget }) => budget)
    for (const entry of all) this.#shelve(entry, entry.match)
  }

  /** Budgets that the calls of this caller count in, in the order of their definition. */
  matching(caller: Caller): readonly Applied[] {
    if (this.budgets.length === 0) return NONE
    const known = this.#found.get(caller)
    if (known !== undefined) return known
    const found = this.#find(caller)
    this.#found.set(caller, found)
    return found
  }

  #find(caller: Caller): readonly Applied[] {
    const { namespace, agent, user, groups } = caller
    const may = new Set<Entry>(this.#others)
    const add = (shelf: BudgetsByName, name: string) => {
      for (const entry of shelf.get(name) ?? []) may.add(entry)
    }
    add(this.#agents, agent)
    add(this.#agents, `${namespace}/${agent}`)
    if (user !== null) add(this.#users, user)
    for (const group of groups) add(this.#groups, group)
    add(this.#namespaces, namespace)
    const found = [...may].filter(({ matches }) => matches(caller)).map(({ budget }) => budget)
    const order = new Map(this.budgets.map((budget, at) => [budget, at]))
    found.sort((one, other) => (order.get(one) ?? 0) - (order.get(other) ?? 0))
    return found.map((budget) => ({ budget, key: budget.keyOf(caller) }))
  }

  /** Under the plain names of the key that tells callers apart best. */
  #shelve(entry: Entry, { agents, users, groups, namespaces }: Match): void {
    if (isPlain(agents)) {
      for (const agent of agents) for (const name of namesOf(agent, namespaces)) put(this.#agents, name, entry)
    } else if (isPlain(users)) for (const user of users) put(this.#users, user, entry)
    else if (isPlain(groups)) for (const group of groups) put(this.#groups, group, entry)
    else if (isPlain(namespaces)) for (const namespace of namespaces) put(this.#namespaces, namespace, entry)
    else this.#others.push(entry)
  }
}

const NONE: readonly Applied[] = []

/** An agent's name within its namespaces where these are plain, so that agents of one name in many namespaces do not stand together. */
function namesOf(agent: string, namespaces: readonly string[] | undefined): readonly string[] {
  if (agent.includes('/') || !isPlain(namespaces)) return [agent]
  return namespaces.map((namespace) => `${namespace}/${agent}`)
}

function put(shelf: BudgetsByName, name: string, entry: Entry): void {
  const entries = shelf.get(name)
  if (entries === undefined) shelf.set(name, [entry])
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
  return ({ namespace, agent, user, groups: mine }) =>
    ofNamespace(namespace) &&
    (ofName(agent) || ofFullName(`${namespace}/${agent}`)) &&
    (users === undefined || (user !== null && ofUser(user))) &&
    (groups === undefined || mine.some(ofGroup))
}

function anyOf(patterns: readonly string[] | undefined): (text: string) => boolean {
  if (patterns === undefined) return () => true
  const plain = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map(glob)
  return (text) => plain.has(text) || globs.some((matches) => matches(text))
}
