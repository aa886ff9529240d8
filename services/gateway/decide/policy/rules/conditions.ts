import { glob } from '@plat/core'
import type { RuleMatch } from '@plat/resources/rendered'
import { type PolicyInput, skillOf } from '../policy-input.ts'

type Key = keyof RuleMatch

/** Value of a message that a key of `match` is compared with: one text, several alternatives, or none, which matches nothing. */
type Subject = (input: PolicyInput) => string | null | readonly string[]

const SUBJECTS: Readonly<Record<Key, Subject>> = {
  servers: ({ target: { server, alias } }) => (alias === undefined ? server : [server, alias]),
  tools: ({ tool }) => tool,
  skills: ({ tool }) => skillOf(tool),
  methods: ({ method }) => method,
  agents: ({ identity }) => identity.agent,
  tiers: ({ identity }) => identity.tier,
  groups: ({ identity }) => identity.groups,
  users: ({ identity }) => identity.user,
  dataClasses: ({ target }) => target.dataClass,
  taints: ({ taints }) => taints,
  sinks: ({ sinks }) => sinks,
}

/** Patterns with a slash are compared with `<ns>/<agent>`, others with the agent's name. */
const agentWithNamespace: Subject = ({ identity }) => `${identity.namespace}/${identity.agent}`

/** Patterns with a `#` are compared with `<issuer>#<user>` as well (docs/decisions/0153). */
const userWithIssuer: Subject = ({ identity: { user, issuer } }) => (user === null ? null : [user, `${issuer}#${user}`])

/** Keys that depend on server and tool alone. */
const TARGET_KEYS: ReadonlySet<Key> = new Set<Key>(['servers', 'tools', 'skills'])

/** Keys that every message has, so that `*` always matches. */
const ALWAYS_THERE: ReadonlySet<Key> = new Set<Key>(['servers', 'methods', 'agents', 'dataClasses'])

/** One key of a rule's `match`: alternatives of patterns. */
export interface Condition {
  /** Shared by conditions of the same key. */
  readonly subject: Subject
  /** Whether it depends on server and tool alone. */
  readonly onTarget: boolean
  /** The names if all patterns are plain; null: some have a `*`. */
  readonly names: ReadonlySet<string> | null
  readonly holds: Matcher
  /** Canonical text of key and patterns: equal texts match the same messages. */
  readonly canonical: string
}

export type Matcher = (input: PolicyInput) => boolean

/** The conditions of a rule, which are ANDed. Those with plain names come first, because they are cheapest. */
export function conditionsOf(match: RuleMatch): Condition[] {
  const plain: Condition[] = []
  const patterned: Condition[] = []
  for (const key of keysOf(SUBJECTS)) {
    const patterns = match[key]
    if (patterns === undefined || (ALWAYS_THERE.has(key) && patterns.includes('*'))) continue
    const one = key === 'agents' ? agentCondition(patterns) : condition(key, subjectOf(key, patterns), patterns)
    if (one.names === null) patterned.push(one)
    else plain.push(one)
  }
  return [...plain, ...patterned]
}

function subjectOf(key: Key, patterns: readonly string[]): Subject {
  return key === 'users' && patterns.some((pattern) => pattern.includes('#')) ? userWithIssuer : SUBJECTS[key]
}

/** Conjunction of the conditions; null: always true. */
export function allOf(conditions: readonly Condition[]): Matcher | null {
  const [first, ...others] = conditions.map(({ holds }) => holds)
  if (first === undefined) return null
  const rest = others.reduceRight<Matcher | null>((after, one) => (after === null ? one : both(one, after)), null)
  return rest === null ? first : both(first, rest)
}

/** Canonical text of the conjunction; empty: always true. */
export function canonicalText(conditions: readonly Condition[]): string {
  return conditions.map(({ canonical }) => canonical).join(' ')
}

function both(one: Matcher, other: Matcher): Matcher {
  return (input) => one(input) && other(input)
}

function condition(key: Key, subject: Subject, patterns: readonly string[]): Condition {
  const isPlain = patterns.every((pattern) => !pattern.includes('*'))
  return {
    subject,
    onTarget: TARGET_KEYS.has(key),
    names: isPlain ? new Set(patterns) : null,
    holds: matcher(subject, patterns),
    canonical: JSON.stringify([key, patterns]),
  }
}

/** With patterns of both kinds either form of the name may match. */
function agentCondition(patterns: readonly string[]): Condition {
  const full = patterns.filter((pattern) => pattern.includes('/'))
  if (full.length === 0) return condition('agents', SUBJECTS.agents, patterns)
  const short = patterns.filter((pattern) => !pattern.includes('/'))
  const ofFull = condition('agents', agentWithNamespace, full)
  if (short.length === 0) return ofFull
  const ofShort = condition('agents', SUBJECTS.agents, short)
  const canonical = JSON.stringify(['agents', patterns])
  return { ...ofShort, names: null, canonical, holds: (input) => ofShort.holds(input) || ofFull.holds(input) }
}

function matcher(subject: Subject, patterns: readonly string[]): Matcher {
  const [only = ''] = patterns
  if (patterns.length === 1 && !only.includes('*')) {
    return (input) => {
      const found = subject(input)
      return found === only || (typeof found === 'object' && found?.includes(only) === true)
    }
  }
  const test = anyOf(patterns)
  return (input) => {
    const found = subject(input)
    if (typeof found === 'string') return test(found)
    return found?.some(test) === true
  }
}

type Test = (text: string) => boolean

/** Disjunction of patterns: exact names by set, the others one by one. */
function anyOf(patterns: readonly string[]): Test {
  if (patterns.includes('*')) return () => true
  const [only] = patterns
  if (patterns.length === 1 && only !== undefined) return glob(only)
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map(glob)
  if (globs.length === 0) return (text) => exact.has(text)
  return (text) => exact.has(text) || fitsOne(globs, text)
}

function fitsOne(tests: readonly Test[], text: string): boolean {
  for (const test of tests) if (test(text)) return true
  return false
}

function keysOf<K extends string>(record: Readonly<Record<K, unknown>>): K[] {
  const keys: K[] = []
  for (const key in record) keys.push(key)
  return keys
}
