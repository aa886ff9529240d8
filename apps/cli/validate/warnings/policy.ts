import { type Manifest, tierOfAgent } from '@plat/resources'
import { DATA_CLASSES } from '@plat/resources/sovereignty'
import { groupsElsewhere } from './groups.ts'
import { Names } from './names.ts'
import { calleesOf, type Reach, routesOf, serversOf } from './reach.ts'
import type { Surroundings, Warning } from './surroundings.ts'

type Policy = Manifest<'ToolPolicy'>
type Rule = NonNullable<Policy['spec']['rules']>[number]
type Match = NonNullable<Rule['match']>

const MODELS = 'llm/'

/** Servers, tools and names that one policy can match. */
interface Scope {
  readonly reach: Reach
  readonly names: Readonly<Partial<Record<keyof Match, Names>>>
  /** Names that also exist outside of plat: only misspellings are reported. */
  readonly nearby: Readonly<Partial<Record<keyof Match, Names>>>
  readonly judgesModels: boolean
}

/**
 * Yields a warning for each entry of a policy that matches nothing: a rule that denies a misspelt name denies nothing. Yields null after
 * each rule, so that the caller can pause.
 */
export function* policyWarnings(policy: Policy, surroundings: Surroundings): Generator<Warning | null> {
  const { namespace, name } = policy.metadata
  const agents = surroundings.declared.agents.filter(
    ({ metadata, spec }) => metadata.namespace === namespace && spec.policyRef === name,
  )
  if (agents.length === 0) {
    const text = `no Agent of namespace ${namespace} has policyRef ${JSON.stringify(name)}, so no rule matches; name the policy in an Agent, or remove it`
    yield { object: policy, field: 'metadata.name', text }
    return
  }
  const scope = scopeOf(policy, agents, surroundings)
  for (const server of Object.keys(policy.spec.toolPins ?? {})) {
    const text = scope.names.servers?.problem(server) ?? null
    if (text !== null) yield { object: policy, field: `spec.toolPins[${server}]`, text }
  }
  for (const [index, rule] of (policy.spec.rules ?? []).entries()) {
    for (const { field, text } of ruleWarnings(rule, scope))
      yield { object: policy, field: `spec.rules[${index}].${field}`, text }
    yield null
  }
}

function scopeOf(policy: Policy, agents: readonly Manifest<'Agent'>[], surroundings: Surroundings): Scope {
  const { declared, config } = surroundings
  const { namespace } = policy.metadata
  const judgesModels = config.modelPolicy === 'policy'
  const models = new Map(routesOf(surroundings).map((route) => [MODELS + route, null]))
  const reach = new Map([
    ...withPins(policy, serversOf(surroundings, namespace, agents)),
    ...calleesOf(surroundings),
    ...(judgesModels ? models : []),
  ])
  const own = agents.flatMap(({ metadata }) => [metadata.name, `${metadata.namespace}/${metadata.name}`])
  const tiers = [...agents.map(({ spec }) => tierOfAgent(spec)), ...declared.tiers.map(({ metadata }) => metadata.name)]
  return {
    reach,
    judgesModels,
    names: {
      servers: new Names('server that agents of this policy can call', reach.keys()),
      agents: new Names('agent of this policy', own),
      tiers: new Names('tier', tiers),
      dataClasses: new Names('data class', DATA_CLASSES),
    },
    nearby: {
      groups: new Names('group', groupsElsewhere(surroundings, policy)),
      taints: new Names('taint label', taintsOf(surroundings)),
      sinks: new Names('sink', labelsOf(surroundings, 'sinks')),
    },
  }
}

function* ruleWarnings(rule: Rule, scope: Scope): Generator<Pick<Warning, 'field' | 'text'>> {
  const match: Match = rule.match ?? {}
  for (const key of ['servers', 'agents', 'tiers', 'dataClasses', 'groups', 'taints', 'sinks'] as const) {
    for (const [index, pattern] of (match[key] ?? []).entries()) {
      const text =
        key === 'servers' && pattern.startsWith(MODELS) && !scope.judgesModels
          ? 'policies do not judge model calls; set modelPolicy to "policy" in gateway.json'
          : (scope.names[key]?.problem(pattern) ?? scope.nearby[key]?.misspelling(pattern) ?? null)
      if (text !== null) yield { field: `match.${key}[${index}]`, text }
    }
  }
  const tools = toolsOf(match, scope)
  if (tools !== null) yield* unmatchedTools(match, tools)
  for (const [index, group] of (rule.quorum?.approverGroups ?? []).entries()) {
    const text = scope.nearby.groups?.misspelling(group) ?? null
    if (text !== null) yield { field: `quorum.approverGroups[${index}]`, text }
  }
}

function* unmatchedTools(match: Match, known: ReadonlySet<string>): Generator<Pick<Warning, 'field' | 'text'>> {
  const servers = match.servers === undefined ? '' : ` of ${match.servers.join(', ')}`
  const isSkill = (name: string) => name.startsWith('skill:')
  const tools = new Names(`known tool${servers}`, known)
  for (const [index, pattern] of (match.tools ?? []).entries()) {
    const text = tools.problem(pattern)
    if (text !== null) yield { field: `match.tools[${index}]`, text }
  }
  const skills = [...known].filter(isSkill).map((name) => name.slice('skill:'.length))
  const skillNames = new Names(`skill${servers}`, skills)
  for (const [index, pattern] of (match.skills ?? []).entries()) {
    const text = skillNames.problem(pattern)
    if (text !== null) yield { field: `match.skills[${index}]`, text }
  }
}

/** Every tool that a rule can match; null: that of some server is not known, or the rule matches no server. */
function toolsOf({ servers }: Match, { reach, names }: Scope): ReadonlySet<string> | null {
  const matched =
    servers === undefined ? [...reach.keys()] : servers.flatMap((one) => names.servers?.matched(one) ?? [])
  const lists = matched.map((server) => reach.get(server) ?? null)
  const known = lists.filter((list) => list !== null)
  return known.length === lists.length && known.length > 0 ? new Set(known.flatMap((list) => [...list])) : null
}

/** The pins of the policy name tools as well. */
function withPins({ spec }: Policy, reach: Reach): Reach {
  const more = Object.entries(spec.toolPins ?? {}).flatMap(([server, { pins = {} }]) => {
    const known = reach.get(server)
    return known === undefined || Object.keys(pins).length === 0
      ? []
      : [[server, new Set([...(known ?? []), ...Object.keys(pins)])] as const]
  })
  return new Map([...reach, ...more])
}

function labelsOf({ declared }: Surroundings, part: 'taints' | 'sinks'): readonly string[] {
  return declared.servers.flatMap(({ spec }) =>
    Object.values(spec.toolLabels ?? {}).flatMap((labels) => labels[part] ?? []),
  )
}

function taintsOf(surroundings: Surroundings): readonly string[] {
  const { declared, config } = surroundings
  const { web, exec, k8sOps } = config
  const builtin = [web, exec, k8sOps].flatMap(({ taintLabels }) => taintLabels)
  const stores = declared.memory.flatMap(({ spec }) => spec.taints ?? [])
  return ['untrusted-input', ...builtin, ...stores, ...labelsOf(surroundings, 'taints')]
}
