import { hash } from 'node:crypto'
import { canonicalJson, glob } from '@plat/core'
import { compileExpression, type Expression } from '@plat/resources'
import {
  type PolicyEntry,
  type PolicyFile,
  type RuleEntry,
  type RuleMatch,
  WHEN_VARIABLES,
} from '@plat/resources/rendered'
import type { Decision } from '../../call/index.ts'
import { type PolicyInput, skillOf } from './question.ts'
import { type Rate, rateOf } from './rates.ts'

type Action = RuleEntry['action']

/** A rule made ready: what a decision by it says is built once, here, and never per call. */
export interface CompiledRule {
  readonly action: Action
  readonly decision: Decision
  /** Does the rule speak of this server and tool at all? Depends on nothing else, so the answer is kept. */
  concerns(server: string, tool: string | null): boolean
  /** Do the caller and the message match? */
  matches(input: PolicyInput): boolean
  readonly when: Expression | null
  /** What each matching call takes, whichever rule decides; null: nothing. */
  readonly rate: Rate | null
}

export interface CompiledPolicy {
  readonly name: string
  readonly rules: readonly CompiledRule[]
  readonly byDefault: Decision
  /** Rules that speak of a server and tool, found once per pair: `<server>\n<tool>`. */
  readonly found: Map<string, readonly CompiledRule[]>
}

/** All policies at one moment; immutable but for the found rules. */
export interface PolicySet {
  /** `sha256:<hex>` of the policies; `none` before a file was read. */
  readonly revision: string
  /** Feeds `plat_gateway_policy_revision`. */
  readonly generation: number
  readonly count: number
  /** Policies of an agent, by `<ns>/<agent>`. */
  readonly byAgent: ReadonlyMap<string, readonly CompiledPolicy[]>
}

/** What stands before a file was read: nobody has a policy, so everything is denied. */
export const noPolicies: PolicySet = { revision: 'none', generation: 0, count: 0, byAgent: new Map() }

/**
 * Pairs of server and tool whose rules are remembered, per policy. Tool names come from callers, so the memory is
 * emptied when it is full; what it holds follows from the immutable policy and never grows old.
 */
export const FOUND_MAX = 4096
/** Longer names are looked up each time, so that nobody fills the memory with them; in characters. */
export const FOUND_MAX_CHARS = 512

/** Compiles every policy of a decoded file, or lists every expression that cannot be. */
export function compilePolicies(file: PolicyFile): { set: PolicySet } | { problems: string[] } {
  const problems: string[] = []
  const byAgent = new Map<string, CompiledPolicy[]>()
  for (const [index, entry] of file.policies.entries()) {
    const policy = compilePolicy(entry, { at: `policies[${index}]`, revision: file.revision, problems })
    for (const agent of entry.agents) {
      const key = `${entry.namespace}/${agent}`
      const others = byAgent.get(key)
      if (others === undefined) byAgent.set(key, [policy])
      else others.push(policy)
    }
  }
  if (problems.length > 0) return { problems }
  return { set: { revision: file.revision, generation: file.generation, count: file.policies.length, byAgent } }
}

interface Compiling {
  readonly at: string
  readonly revision: string
  readonly problems: string[]
}

function compilePolicy(entry: PolicyEntry, compiling: Compiling): CompiledPolicy {
  return {
    name: entry.name,
    rules: entry.rules.map((rule, index) =>
      compileRule(entry, rule, { ...compiling, at: `${compiling.at}.rules[${index}]` }),
    ),
    byDefault: {
      ...undecided(compiling.revision),
      action: entry.defaultAction,
      policy: entry.name,
      reason: `no rule of policy ${entry.name} allows this`,
      engines: [{ name: 'native', action: entry.defaultAction }],
    },
    found: new Map(),
  }
}

function compileRule(policy: PolicyEntry, rule: RuleEntry, compiling: Compiling): CompiledRule {
  const match = rule.match ?? {}
  const when = rule.when === undefined ? null : compileExpression(rule.when, WHEN_VARIABLES)
  if (typeof when === 'string') compiling.problems.push(`${compiling.at}.when: ${when}`)
  return {
    action: rule.action,
    decision: {
      ...undecided(compiling.revision),
      action: rule.action,
      policy: policy.name,
      rule: rule.name,
      ruleSha256: hash('sha256', canonicalJson({ policy: policy.name, rule }), 'hex'),
      reason: rule.reason ?? `rule ${rule.name} of policy ${policy.name}`,
      engines: [{ name: 'native', action: rule.action }],
    },
    concerns: concernsOf(match),
    matches: matchesOf(match),
    when: typeof when === 'string' ? null : when,
    rate: rule.rateLimit === undefined ? null : rateOf(rule.rateLimit, { policy: policy.name, rule: rule.name }),
  }
}

/** The parts of a decision that native rules leave empty. */
export function undecided(revision: string): Decision {
  return { action: 'deny', policy: null, rule: null, reason: '', revision, engines: [], wouldBe: [], rates: [] }
}

type Test = (text: string) => boolean

/** One test for a list of patterns: exact names by set, the others one after the other. Absent: null. */
function anyOf(patterns: readonly string[] | undefined): Test | null {
  if (patterns === undefined) return null
  const exact = new Set(patterns.filter((pattern) => !pattern.includes('*')))
  const globs = patterns.filter((pattern) => pattern.includes('*')).map(glob)
  if (globs.length === 0) return (text) => exact.has(text)
  return (text) => exact.has(text) || globs.some((test) => test(text))
}

/** A rule with tools or skills never matches a message without one. */
function concernsOf(match: RuleMatch): CompiledRule['concerns'] {
  const servers = anyOf(match.servers)
  const tools = anyOf(match.tools)
  const skills = anyOf(match.skills)
  return (server, tool) => {
    if (servers !== null && !servers(server)) return false
    if (tools !== null && (tool === null || !tools(tool))) return false
    if (skills === null) return true
    const skill = skillOf(tool)
    return skill !== null && skills(skill)
  }
}

function matchesOf(match: RuleMatch): CompiledRule['matches'] {
  const tests: ((input: PolicyInput) => boolean)[] = []
  const require = (test: Test | null, of: (input: PolicyInput) => string | null) => {
    if (test === null) return
    tests.push((input) => {
      const text = of(input)
      return text !== null && test(text)
    })
  }
  require(anyOf(match.methods), (input) => input.method)
  require(anyOf(match.tiers), (input) => input.identity.tier)
  require(anyOf(match.users), (input) => input.identity.user)
  require(anyOf(match.dataClasses), (input) => input.target.dataClass)
  const groups = anyOf(match.groups)
  if (groups !== null) tests.push((input) => input.identity.groups.some(groups))
  const agents = agentsOf(match.agents)
  if (agents !== null) tests.push(agents)
  return (input) => tests.every((test) => test(input))
}

/** A pattern with a slash is compared with `<ns>/<agent>`, one without with the agent's name. */
function agentsOf(patterns: readonly string[] | undefined): ((input: PolicyInput) => boolean) | null {
  if (patterns === undefined) return null
  const short = anyOf(patterns.filter((pattern) => !pattern.includes('/')))
  const full = anyOf(patterns.filter((pattern) => pattern.includes('/')))
  return ({ identity }) =>
    short?.(identity.agent) === true || full?.(`${identity.namespace}/${identity.agent}`) === true
}
