import { createHash } from 'node:crypto'
import { canonicalJson } from '@plat/core'
import type { Manifest } from '@plat/resources'
import type { PolicyEntry, PolicyFile, RuleEntry } from '@plat/resources/rendered'
import { agentProblems } from '../validate/agent.ts'
import { policyProblems } from '../validate/policy.ts'
import { checked, type Problem, problemLine, shareProblems } from '../validate/problem.ts'
import { type Declared, keyOf, objectKey, objectKeyOf, sorted } from './declared.ts'
import { OVER_SHARE } from './size/shares.ts'

/**
 * Agents and ToolPolicies as the gateway's policyFile. What cannot be enforced becomes a policy that denies everything
 * and says why; an agent whose policyRef leads nowhere is in no policy, and so denied.
 * `previous` is the file before: the generation grows when the policies change.
 */
export function renderPolicies(
  declared: Declared,
  previous: Pick<PolicyFile, 'generation' | 'revision'> | null,
): { file: PolicyFile; refused: string[] } {
  const refused: string[] = []
  const entries: PolicyEntry[] = []
  const governed = new Map<string, string[]>(declared.policies.map((policy) => [keyOf(policy), []]))
  for (const agent of sorted(declared.agents)) {
    const lines = agentProblems(agent, declared).map((problem) => problemLine(agent, problem))
    refused.push(...lines)
    // An omitted policy takes no space: an agent without a policy is denied.
    if (isOversized(agent, declared)) continue
    if (lines.length > 0)
      entries.push(denying(`Agent/${keyOf(agent)}`, agent.metadata.namespace, [agent.metadata.name], lines))
    else refused.push(...govern(agent, governed, declared))
  }
  for (const policy of sorted(declared.policies)) {
    const agents = governed.get(keyOf(policy)) ?? []
    const share = shareProblems(policy, declared)
    refused.push(...share.map((problem) => problemLine(policy, problem)))
    if (share.length > 0) continue
    const lines = policyProblems(policy).map((problem) => problemLine(policy, problem))
    refused.push(...lines)
    if (lines.length > 0) entries.push(denying(keyOf(policy), policy.metadata.namespace, agents, lines))
    else {
      refused.push(
        ...checked(() => cedarProblems(policy, declared.cedar)).map((problem) => problemLine(policy, problem)),
      )
      entries.push(entryOf(policy, agents))
    }
  }
  const revision = `sha256:${createHash('sha256').update(canonicalJson(entries)).digest('hex')}`
  const generation = previous?.revision === revision ? previous.generation : (previous?.generation ?? 0) + 1
  return { file: { version: 1, generation, revision, policies: entries }, refused }
}

function isOversized(object: Manifest, { oversized }: Pick<Declared, 'oversized'>): boolean {
  return oversized?.has(objectKeyOf(object)) === true
}

/** Puts the agent under its policy, or says why that cannot be. */
function govern(
  agent: Manifest<'Agent'>,
  governed: ReadonlyMap<string, string[]>,
  { oversized }: Pick<Declared, 'oversized'>,
): string[] {
  const { policyRef } = agent.spec
  if (policyRef === undefined) return [problemLine(agent, { path: 'policyRef', why: 'missing: the agent is denied' })]
  const key = `${agent.metadata.namespace}/${policyRef}`
  const agents = governed.get(key)
  if (agents === undefined) {
    return [problemLine(agent, { path: 'policyRef', why: `no ToolPolicy ${key}: the agent is denied` })]
  }
  agents.push(agent.metadata.name)
  if (oversized?.has(objectKey('ToolPolicy', key)) !== true) return []
  return [problemLine(agent, { path: 'policyRef', why: `ToolPolicy ${key} ${OVER_SHARE}: the agent is denied` })]
}

/** A Cedar text that is none goes on as it is: the gateway denies by it, and counts it. */
function cedarProblems({ spec: { cedar = '' } }: Manifest<'ToolPolicy'>, engine: Declared['cedar']): Problem[] {
  const compiled = cedar === '' ? null : engine?.compile(cedar)
  return typeof compiled === 'string' ? [{ path: 'cedar', why: `${compiled}: the policy denies` }] : []
}

function entryOf({ metadata, spec }: Manifest<'ToolPolicy'>, agents: readonly string[]): PolicyEntry {
  return {
    name: `${metadata.namespace}/${metadata.name}`,
    namespace: metadata.namespace,
    agents: [...agents],
    mode: spec.mode ?? 'enforce',
    defaultAction: 'deny',
    cedar: spec.cedar ?? '',
    rules: (spec.rules ?? []).map(ruleOf),
  }
}

type Rule = NonNullable<Manifest<'ToolPolicy'>['spec']['rules']>[number]

function ruleOf({ name, action, match, when, reason, quorum, rateLimit }: Rule): RuleEntry {
  return {
    name,
    action,
    ...(match !== undefined && { match }),
    ...(when !== undefined && { when }),
    ...(reason !== undefined && { reason }),
    ...(quorum !== undefined && { quorum }),
    ...(rateLimit !== undefined && { rateLimit }),
  }
}

/** Longest reason that the format takes, in characters. */
const REASON_MAX = 1024

function denying(name: string, namespace: string, agents: readonly string[], lines: readonly string[]): PolicyEntry {
  const reason = lines.join('; ').slice(0, REASON_MAX).toWellFormed()
  const rules: RuleEntry[] = [{ name: 'refused', action: 'deny', reason }]
  return { name, namespace, agents: [...agents], mode: 'enforce', defaultAction: 'deny', cedar: '', rules }
}
