import type { PolicyInput } from '../policy-input.ts'
import { allOf, type Condition, type Matcher, wordsOf } from './conditions.ts'

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
  readonly asks: string
}

/** Rules by the names of one subject. */
interface NamedRules<R> {
  readonly subject: Condition['subject']
  readonly byName: Map<string, CandidateRule<R>[]>
}

/** Maximum number of rules per name in the maps. Rules with more common names are found through the cache by server and tool. */
const SHELF_MAX = 16

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
  readonly #shelves: readonly NamedRules<R>[]
  /** Rules outside of the maps, with their conditions on server and tool. */
  readonly #others: readonly { readonly ofPlace: Matcher | null; readonly rule: CandidateRule<R> }[]
  readonly #found = new Map<string, Map<string | null, readonly CandidateRule<R>[]>>()
  #remembered = 0

  constructor(rules: readonly { readonly rule: R; readonly conditions: readonly Condition[] }[]) {
    const crowd = new Crowd(rules.flatMap(({ conditions }) => conditions))
    const shelves = new Map<Condition['subject'], NamedRules<R>>()
    const others: { ofPlace: Matcher | null; rule: CandidateRule<R> }[] = []
    for (const [order, { rule, conditions }] of rules.entries()) {
      const shelved = crowd.leastShared(conditions)
      const isAnswered = (one: Condition) => (shelved === null ? one.ofPlace : one === shelved)
      const unanswered = conditions.filter((one) => !isAnswered(one))
      const left = { ...rule, order, matches: allOf(unanswered), asks: wordsOf(unanswered) }
      if (shelved === null) others.push({ ofPlace: allOf(conditions.filter(isAnswered)), rule: left })
      else shelve(shelves, shelved, left)
    }
    for (const { byName } of shelves.values()) for (const [name, found] of byName) byName.set(name, weighty(found))
    this.#shelves = [...shelves.values()]
    this.#others = others
  }

  /** Number of cached pairs of server and tool. */
  get remembered(): number {
    return this.#remembered
  }

  /** Returns every rule that may match, in the order of the policy. */
  candidates(input: PolicyInput): readonly CandidateRule<R>[] {
    let found = this.#others.length === 0 ? NONE : this.#othersFor(input)
    for (const { subject, byName } of this.#shelves) {
      const names = subject(input)
      if (typeof names === 'string') found = merged(found, byName.get(names) ?? NONE)
      else if (names !== null) for (const name of names) found = merged(found, byName.get(name) ?? NONE)
    }
    return found
  }

  #othersFor(input: PolicyInput): readonly CandidateRule<R>[] {
    const { server } = input.target
    const known = this.#found.get(server)?.get(input.tool)
    if (known !== undefined) return known
    const fitting = this.#others.filter(({ ofPlace }) => ofPlace === null || ofPlace(input))
    const rules = weighty(fitting.map(({ rule }) => rule))
    if (server.length + (input.tool?.length ?? 0) <= FOUND_MAX_CHARS) this.#remember(server, input.tool, rules)
    return rules
  }

  #remember(server: string, tool: string | null, rules: readonly CandidateRule<R>[]): void {
    if (this.#remembered >= FOUND_MAX) {
      this.#found.clear()
      this.#remembered = 0
    }
    const tools = this.#found.get(server) ?? new Map<string | null, readonly CandidateRule<R>[]>()
    this.#found.set(server, tools.set(tool, rules))
    this.#remembered++
  }
}

const NONE: readonly never[] = []

/** Counts how many rules share each name of each subject. */
class Crowd {
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
    let least = conditions.some(({ ofPlace }) => ofPlace) ? SHELF_MAX + 1 : Number.POSITIVE_INFINITY
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

function shelve<R>(
  shelves: Map<Condition['subject'], NamedRules<R>>,
  { subject, names }: Condition,
  rule: CandidateRule<R>,
) {
  const shelf = shelves.get(subject) ?? { subject, byName: new Map<string, CandidateRule<R>[]>() }
  shelves.set(subject, shelf)
  for (const name of names ?? []) {
    const others = shelf.byName.get(name)
    if (others === undefined) shelf.byName.set(name, [rule])
    else others.push(rule)
  }
}

/** Removes rules that neither decide nor count: wherever one matches, another one matches that is stricter, or equal and earlier. */
function weighty<R extends Weighed>(rules: readonly CandidateRule<R>[]): CandidateRule<R>[] {
  const strictest = new Map<string, CandidateRule<R>>()
  for (const rule of rules) {
    if (rule.when === null && !outweighs(strictest.get(rule.asks), rule)) strictest.set(rule.asks, rule)
  }
  const isNeedless = (rule: CandidateRule<R>) =>
    rule.rate === null && (outweighs(strictest.get(''), rule) || outweighs(strictest.get(rule.asks), rule))
  return rules.filter((rule) => !isNeedless(rule))
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
