import type { PolicyInput } from '../policy-input.ts'
import { allOf, type Condition, canonicalText, type Matcher } from './conditions.ts'

/** Properties that the index uses, in addition to conditions. */
export interface Weighed {
  /** The strictest matching rule decides, the first among equals. */
  readonly strictness: number
  /** Null: only its conditions matter. */
  readonly when: object | null
  /** Null: the rule matters only if it decides. */
  readonly rate: object | null
}

/** A rule that may match. `matches` evaluates the remaining conditions; null: none are left. */
export type CandidateRule<R> = R & {
  readonly order: number
  readonly matches: Matcher | null
  /** Canonical text of `matches`: equal texts match the same calls. Empty: nothing is left. */
  readonly remainder: string
}

/** Rules by the names of one subject. */
interface NamedRules<R> {
  readonly subject: Condition['subject']
  readonly byName: Map<string, CandidateRule<R>[]>
}

/** Maximum number of rules per name in the maps. Rules with more common names are found through the cache by server and tool. */
const INDEXED_MAX = 16

/**
 * Bound of cached pairs of server and tool. Tool names come from callers, so the cache is cleared when full. Entries derive from
 * immutable rules and never become stale.
 */
export const FOUND_MAX = 4096
/** Longer names are not cached, so that callers cannot fill memory, in characters. */
export const FOUND_MAX_CHARS = 512

/**
 * Index of a policy's rules, so that a call evaluates few candidates instead of a thousand rules: plain names are looked up in maps, and
 * rules with patterns only are evaluated once per server and tool. Leaves out only rules that cannot match or cannot change the verdict.
 */
export class RuleIndex<R extends Weighed> {
  readonly #indexes: readonly NamedRules<R>[]
  /** Rules outside of the maps, with their conditions on server and tool. */
  readonly #others: readonly { readonly onTarget: Matcher | null; readonly rule: CandidateRule<R> }[]
  readonly #cached = new Map<string, Map<string | null, readonly CandidateRule<R>[]>>()
  #cachedPairs = 0

  constructor(rules: readonly { readonly rule: R; readonly conditions: readonly Condition[] }[]) {
    const counts = new NameCounts(rules.flatMap(({ conditions }) => conditions))
    const indexes = new Map<Condition['subject'], NamedRules<R>>()
    const others: { onTarget: Matcher | null; rule: CandidateRule<R> }[] = []
    for (const [order, { rule, conditions }] of rules.entries()) {
      const indexed = counts.leastShared(conditions)
      const isResolved = (one: Condition) => (indexed === null ? one.onTarget : one === indexed)
      const unresolved = conditions.filter((one) => !isResolved(one))
      const left = { ...rule, order, matches: allOf(unresolved), remainder: canonicalText(unresolved) }
      if (indexed === null) others.push({ onTarget: allOf(conditions.filter(isResolved)), rule: left })
      else addToIndex(indexes, indexed, left)
    }
    for (const { byName } of indexes.values()) for (const [name, found] of byName) byName.set(name, relevant(found))
    this.#indexes = [...indexes.values()]
    this.#others = others
  }

  get cachedPairs(): number {
    return this.#cachedPairs
  }

  /** Returns every rule that may match, in the order of the policy. */
  candidates(input: PolicyInput): readonly CandidateRule<R>[] {
    let found = this.#others.length === 0 ? NONE : this.#othersFor(input)
    for (const { subject, byName } of this.#indexes) {
      const names = subject(input)
      if (typeof names === 'string') found = merged(found, byName.get(names) ?? NONE)
      else if (names !== null) for (const name of names) found = merged(found, byName.get(name) ?? NONE)
    }
    return found
  }

  #othersFor(input: PolicyInput): readonly CandidateRule<R>[] {
    const { server } = input.target
    const known = this.#cached.get(server)?.get(input.tool)
    if (known !== undefined) return known
    const fitting = this.#others.filter(({ onTarget }) => onTarget === null || onTarget(input))
    const rules = relevant(fitting.map(({ rule }) => rule))
    if (server.length + (input.tool?.length ?? 0) <= FOUND_MAX_CHARS) this.#cache(server, input.tool, rules)
    return rules
  }

  #cache(server: string, tool: string | null, rules: readonly CandidateRule<R>[]): void {
    if (this.#cachedPairs >= FOUND_MAX) {
      this.#cached.clear()
      this.#cachedPairs = 0
    }
    const tools = this.#cached.get(server) ?? new Map<string | null, readonly CandidateRule<R>[]>()
    this.#cached.set(server, tools.set(tool, rules))
    this.#cachedPairs++
  }
}

const NONE: readonly never[] = []

/** Counts how many rules share each name of each subject. */
class NameCounts {
  readonly #counts = new Map<Condition['subject'], Map<string, number>>()

  constructor(conditions: readonly Condition[]) {
    for (const { subject, names } of conditions) {
      const counts = this.#counts.get(subject) ?? new Map<string, number>()
      this.#counts.set(subject, counts)
      for (const name of names ?? []) counts.set(name, (counts.get(name) ?? 0) + 1)
    }
  }

  /**
   * Returns the condition with plain names that the fewest rules share; null if patterns, or conditions on server and tool, are more
   * selective.
   */
  leastShared(conditions: readonly Condition[]): Condition | null {
    let best: Condition | null = null
    let least = conditions.some(({ onTarget }) => onTarget) ? INDEXED_MAX + 1 : Number.POSITIVE_INFINITY
    for (const condition of conditions) {
      const shared = this.#shared(condition)
      if (shared >= least) continue
      least = shared
      best = condition
    }
    return best
  }

  #shared({ subject, names }: Condition): number {
    if (names === null) return Number.POSITIVE_INFINITY
    let most = 0
    for (const name of names) most = Math.max(most, this.#counts.get(subject)?.get(name) ?? 0)
    return most
  }
}

function addToIndex<R>(
  indexes: Map<Condition['subject'], NamedRules<R>>,
  { subject, names }: Condition,
  rule: CandidateRule<R>,
) {
  const index = indexes.get(subject) ?? { subject, byName: new Map<string, CandidateRule<R>[]>() }
  indexes.set(subject, index)
  for (const name of names ?? []) {
    const others = index.byName.get(name)
    if (others === undefined) index.byName.set(name, [rule])
    else others.push(rule)
  }
}

/** Removes rules that neither decide nor count: wherever one matches, another one matches that is stricter, or equal and earlier. */
function relevant<R extends Weighed>(rules: readonly CandidateRule<R>[]): CandidateRule<R>[] {
  const strictest = new Map<string, CandidateRule<R>>()
  for (const rule of rules) {
    if (rule.when === null && !outweighs(strictest.get(rule.remainder), rule)) strictest.set(rule.remainder, rule)
  }
  const isRedundant = (rule: CandidateRule<R>) =>
    rule.rate === null && (outweighs(strictest.get(''), rule) || outweighs(strictest.get(rule.remainder), rule))
  return rules.filter((rule) => !isRedundant(rule))
}

/** Whether a rule takes precedence over another if both match. */
function outweighs<R extends Weighed>(one: CandidateRule<R> | undefined, other: CandidateRule<R>): boolean {
  if (one === undefined) return false
  return one.strictness > other.strictness || (one.strictness === other.strictness && one.order < other.order)
}

/** Merges two ordered lists without duplicates. */
function merged<R>(a: readonly CandidateRule<R>[], b: readonly CandidateRule<R>[]): readonly CandidateRule<R>[] {
  if (a.length === 0) return b
  if (b.length === 0) return a
  const all: CandidateRule<R>[] = []
  let at = 0
  for (const rule of a) {
    for (let next = b[at]; next !== undefined && next.order <= rule.order; next = b[++at]) {
      if (next.order < rule.order) all.push(next)
    }
    all.push(rule)
  }
  while (at < b.length) {
    const next = b[at++]
    if (next !== undefined) all.push(next)
  }
  return all
}
