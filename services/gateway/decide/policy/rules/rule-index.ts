import type { PolicyInput } from '../policy-input.ts'
import { allOf, type Condition, type Matcher, wordsOf } from './conditions.ts'

/** What the index looks at, beside conditions. */
export interface Weighed {
  /** A rule decides when none that matches is stricter, and none before it is as strict. */
  readonly strictness: number
  /** Null: nothing is asked beyond its conditions. */
  readonly when: object | null
  /** Null: it matters only where it decides. */
  readonly rate: object | null
}

/** A rule that may match; `matches` asks what the index has not answered yet, null: nothing is left to ask. */
export type CandidateRule<R> = R & {
  readonly order: number
  readonly matches: Matcher | null
  /** What `matches` asks, in words: rules of the same words match the same calls. Empty: nothing is left to ask. */
  readonly asks: string
}

/** Rules by the names of one subject. */
interface NamedRules<R> {
  readonly subject: Condition['subject']
  readonly byName: Map<string, CandidateRule<R>[]>
}

/**
 * A rule stands under its names when no more rules than this share one of them; beyond, what server and tool answer is
 * remembered instead, which finds the few among many that share a name.
 */
const SHELF_MAX = 16

/**
 * Pairs of server and tool whose rules are remembered. Tool names come from callers, so the memory is emptied when it is
 * full; what it holds follows from immutable rules and never grows old.
 */
export const FOUND_MAX = 4096
/** Longer names are looked up each time, so that nobody fills the memory with them; in characters. */
export const FOUND_MAX_CHARS = 512

/**
 * The rules of a policy by what they ask for, so that a call meets the few that may match and not each of a thousand: plain names
 * stand in maps; rules that only patterns tell apart are asked once for each server and tool. Only leaves out what cannot match, or
 * could not change the verdict if it did.
 */
export class RuleIndex<R extends Weighed> {
  readonly #shelves: readonly NamedRules<R>[]
  /** Rules outside of the shelves, with what they ask of server and tool. */
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

  /** Server and tool whose rules are remembered. */
  get remembered(): number {
    return this.#remembered
  }

  /** Every rule that may match, in the order of the policy. */
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

/** How many rules share each name of each subject. */
class Crowd {
  readonly #counts = new Map<Condition['subject'], Map<string, number>>()

  constructor(conditions: readonly Condition[]) {
    for (const { subject, names } of conditions) {
      const counts = this.#counts.get(subject) ?? new Map<string, number>()
      this.#counts.set(subject, counts)
      for (const name of names ?? []) counts.set(name, (counts.get(name) ?? 0) + 1)
    }
  }

  /** The condition of plain names which the fewest rules share; null: patterns, or what server and tool answer, tell more. */
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

/**
 * Without rules that neither decide nor count: wherever such a rule matches, another one surely does that is stricter, or as strict and
 * before it.
 */
function weighty<R extends Weighed>(rules: readonly CandidateRule<R>[]): CandidateRule<R>[] {
  const strictest = new Map<string, CandidateRule<R>>()
  for (const rule of rules) {
    if (rule.when === null && !outweighs(strictest.get(rule.asks), rule)) strictest.set(rule.asks, rule)
  }
  const isNeedless = (rule: CandidateRule<R>) =>
    rule.rate === null && (outweighs(strictest.get(''), rule) || outweighs(strictest.get(rule.asks), rule))
  return rules.filter((rule) => !isNeedless(rule))
}

/** Whether a rule decides instead of another where both match. */
function outweighs<R extends Weighed>(one: CandidateRule<R> | undefined, other: CandidateRule<R>): boolean {
  if (one === undefined) return false
  return one.strictness > other.strictness || (one.strictness === other.strictness && one.order < other.order)
}

/** Two lists in order as one, with a rule that stands in both only once. */
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
