import { glob } from '@plat/core'
import type { RuleMatch } from '@plat/resources/rendered'
import { type PolicyInput, skillOf } from './question.ts'

type Key = Exclude<keyof RuleMatch, 'taints' | 'sinks'>

/** What a key of `match` asks of a message: one text, several of which any will do, or none, which matches nothing. */
type Subject = (input: PolicyInput) => string | null | readonly string[]

const SUBJECTS: Readonly<Record<Key, Subject>> = {
  servers: ({ target }) => target.server,
  tools: ({ tool }) => tool,
  skills: ({ tool }) => skillOf(tool),
  methods: ({ method }) => method,
  // A pattern with a slash is compared with `<ns>/<agent>`, one without with the agent's name.
  agents: ({ identity }) => [identity.agent, `${identity.namespace}/${identity.agent}`],
  tiers: ({ identity }) => identity.tier,
  groups: ({ identity }) => identity.groups,
  users: ({ identity }) => identity.user,
  dataClasses: ({ target }) => target.dataClass,
}

/** Keys whose answer follows from server and tool alone. */
const OF_PLACE: ReadonlySet<Key> = new Set<Key>(['servers', 'tools', 'skills'])

/** One key of a rule's `match`: several patterns, one of which must fit. */
export interface Condition {
  readonly key: Key
  readonly subject: Subject
  /** Does the answer follow from server and tool alone? */
  readonly ofPlace: boolean
  /** The names, when all patterns are plain names; null: some have a `*`. */
  readonly names: ReadonlySet<string> | null
  readonly holds: Matcher
}

export type Matcher = (input: PolicyInput) => boolean

/** The conditions of a rule; all of them must hold. */
export function conditionsOf(match: RuleMatch): Condition[] {
  const conditions: Condition[] = []
  for (const key of keysOf(SUBJECTS)) {
    const patterns = match[key]
    if (patterns === undefined) continue
    const isExact = patterns.every((pattern) => !pattern.includes('*'))
    conditions.push({
      key,
      subject: SUBJECTS[key],
      ofPlace: OF_PLACE.has(key),
      names: isExact ? new Set(patterns) : null,
      holds: key === 'agents' ? agentMatcher(patterns) : matcher(SUBJECTS[key], anyOf(patterns)),
    })
  }
  return conditions
}

/** All of the conditions as one; null: nothing is asked. */
export function allOf(conditions: readonly Condition[]): Matcher | null {
  const [first, second] = conditions
  if (first === undefined) return null
  if (second === undefined) return first.holds
  return (input) => {
    for (const { holds } of conditions) if (!holds(input)) return false
    return true
  }
}

function matcher(subject: Subject, test: Test): Matcher {
  return (input) => {
    const found = subject(input)
    if (typeof found === 'string') return test(found)
    return found?.some(test) === true
  }
}

function agentMatcher(patterns: readonly string[]): Matcher {
  const short = anyOf(patterns.filter((pattern) => !pattern.includes('/')))
  const full = anyOf(patterns.filter((pattern) => pattern.includes('/')))
  return ({ identity }) => short(identity.agent) || full(`${identity.namespace}/${identity.agent}`)
}

type Test = (text: string) => boolean

/** One test for a list of patterns: exact names by set, the others one after the other. */
function anyOf(patterns: readonly string[]): Test {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map(glob)
  const [only] = patterns
  if (patterns.length === 1 && only !== undefined) return glob(only)
  if (globs.length === 0) return (text) => exact.has(text)
  return (text) => exact.has(text) || globs.some((test) => test(text))
}

function keysOf<K extends string>(record: Readonly<Record<K, unknown>>): K[] {
  const keys: K[] = []
  for (const key in record) keys.push(key)
  return keys
}
