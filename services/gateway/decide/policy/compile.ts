import { hash } from 'node:crypto'
import { canonicalJson } from '@plat/core'
import type { Cedar } from '@plat/resources/cedar'
import { compileExpression } from '@plat/resources/expression'
import { type PolicyEntry, type PolicyFile, type RuleEntry, WHEN_VARIABLES } from '@plat/resources/rendered'
import type { Decision } from '../../call/index.ts'
import type { CompiledPolicy, CompiledRule } from './compiled-policy.ts'
import { type CedarText, cedarText } from './engines/cedar.ts'
import { Governance } from './governance.ts'
import { allOf, conditionsOf } from './rules/conditions.ts'
import { rateOf } from './rules/rates.ts'
import { RuleIndex } from './rules/rule-index.ts'

const STRICTNESS: Readonly<Record<CompiledRule['action'], number>> = { allow: 1, require_approval: 2, deny: 3 }

export interface PolicySet {
  /** `sha256:<hex>` of the policies; `none` before a file was loaded. */
  readonly revision: string
  /** Value of `plat_gateway_policy_revision`. */
  readonly generation: number
  readonly count: number
  /** Policies of an agent by namespace and name, in nested maps so that no call has to build a key. */
  readonly byAgent: ReadonlyMap<string, ReadonlyMap<string, Governance>>
  readonly cedars: readonly CedarText[]
  /** The policies as written. */
  readonly entries: readonly PolicyEntry[]
}

/** Initial set: no agent has a policy, so everything is denied. */
export const noPolicies: PolicySet = {
  revision: 'none',
  generation: 0,
  count: 0,
  byAgent: new Map(),
  cedars: [],
  entries: [],
}

/**
 * Compiles every policy of a decoded file. Returns every expression that cannot be compiled. Cedar texts that cannot be compiled deny,
 * as do all Cedar texts if `cedar` is null.
 */
export function compilePolicies(
  file: PolicyFile,
  cedar: Cedar | null = null,
): { set: PolicySet } | { problems: string[] } {
  const problems: string[] = []
  const cedars: CedarText[] = []
  const byAgent = new Map<string, Map<string, Governance>>()
  for (const [index, entry] of file.policies.entries()) {
    const policy = compilePolicy(entry, { at: `policies[${index}]`, revision: file.revision, problems })
    const text = entry.cedar === '' ? null : cedarText(entry.name, entry.cedar, cedar)
    if (text !== null) cedars.push(text)
    const ofNamespace = byAgent.getOrInsertComputed(entry.namespace, () => new Map())
    for (const agent of entry.agents) {
      const governance = ofNamespace.getOrInsertComputed(agent, () => new Governance(file.revision))
      governance.add(entry, text === null || entry.rules.length > 0 ? policy : null, text)
    }
  }
  if (problems.length > 0) return { problems }
  const { revision, generation, policies } = file
  return { set: { revision, generation, count: policies.length, byAgent, cedars, entries: policies } }
}

interface Compiling {
  readonly at: string
  readonly revision: string
  readonly problems: string[]
}

function compilePolicy(entry: PolicyEntry, compiling: Compiling): CompiledPolicy {
  const rules = entry.rules.map((rule, index) => ({
    rule: compileRule(entry, rule, { ...compiling, at: `${compiling.at}.rules[${index}]` }),
    conditions: conditionsOf(rule.match ?? {}),
    quorum: rule.quorum ?? null,
  }))
  return {
    name: entry.name,
    rules: new RuleIndex(rules),
    asking: rules.flatMap(({ rule: { action, when, decision }, conditions, quorum }) => {
      const { policy, rule } = decision
      return action === 'require_approval' ? [{ policy, rule, quorum, matches: allOf(conditions), when }] : []
    }),
    byDefault: {
      ...undecided(compiling.revision),
      action: entry.defaultAction,
      policy: entry.name,
      reason: inOnePiece('no rule of policy', entry.name, 'allows this'),
      engines: [{ name: 'native', action: entry.defaultAction }],
    },
  }
}

function compileRule(policy: PolicyEntry, rule: RuleEntry, compiling: Compiling): CompiledRule {
  const when = rule.when === undefined ? null : compileExpression(rule.when, WHEN_VARIABLES)
  if (typeof when === 'string') compiling.problems.push(`${compiling.at}.when: ${when}`)
  return {
    action: rule.action,
    strictness: STRICTNESS[rule.action],
    decision: {
      ...undecided(compiling.revision),
      action: rule.action,
      policy: policy.name,
      rule: rule.name,
      ruleSha256: hash('sha256', canonicalJson({ policy: policy.name, rule }), 'hex'),
      reason: rule.reason ?? inOnePiece('rule', rule.name, 'of policy', policy.name),
      ...(stopsTaintedSink(rule) && { code: 'tainted_sink' }),
      engines: [{ name: 'native', action: rule.action }],
    },
    when: typeof when === 'string' ? null : when,
    rate: rule.rateLimit === undefined ? null : rateOf(rule.rateLimit, { policy: policy.name, rule: rule.name }),
  }
}

/** Whether the rule prevents a tainted session from using a sink. Its refusal has a separate code. */
function stopsTaintedSink({ action, match }: RuleEntry): boolean {
  return action === 'deny' && match?.taints !== undefined && match.sinks !== undefined
}

/** Builds a flat string, because every decision of a rule serializes its reason: concatenated strings make `JSON.stringify` slower. */
function inOnePiece(...words: readonly string[]): string {
  return words.join(' ')
}

/** Members of a decision that native rules leave empty. */
export function undecided(revision: string): Decision {
  return { action: 'deny', policy: null, rule: null, reason: '', revision, engines: [], wouldBe: [], rates: [] }
}
