import { compileExpression, type Manifest } from '@plat/resources'
import { WHEN_VARIABLES } from '@plat/resources/rendered'
import { pinProblems } from '../render/pins.ts'
import { checked, emptyMembers, type Problem } from './problem.ts'

export function policyProblems(policy: Manifest<'ToolPolicy'>): Problem[] {
  return checked(() => problemsOfPolicy(policy))
}

function problemsOfPolicy({ spec }: Manifest<'ToolPolicy'>): Problem[] {
  const problems: Problem[] = []
  for (const [server, pins] of Object.entries(spec.toolPins ?? {})) {
    problems.push(...pinProblems(`toolPins[${server}]`, pins))
  }
  for (const [index, rule] of (spec.rules ?? []).entries()) {
    for (const { path, why } of ruleProblems(rule)) problems.push({ path: `rules[${index}].${path}`, why })
  }
  return problems
}

type Rule = NonNullable<Manifest<'ToolPolicy'>['spec']['rules']>[number]

function quorumProblems(action: Rule['action'], quorum: NonNullable<Rule['quorum']>): Problem[] {
  if (action !== 'require_approval') return [{ path: 'quorum', why: 'only a rule that says require_approval has one' }]
  if (quorum.minApprovers !== 0 || quorum.userConfirmation !== undefined) return []
  return [{ path: 'quorum.minApprovers', why: '0 needs userConfirmation: somebody must agree' }]
}

function ruleProblems(rule: Rule): Problem[] {
  const problems: Problem[] = []
  for (const [key, names] of Object.entries(rule.match ?? {})) problems.push(...emptyMembers(`match.${key}`, names))
  problems.push(...emptyMembers('quorum.approverGroups', rule.quorum?.approverGroups))
  for (const [index, { names }] of (rule.rateLimit?.except ?? []).entries())
    problems.push(...emptyMembers(`rateLimit.except[${index}].names`, names))
  if (rule.quorum !== undefined) problems.push(...quorumProblems(rule.action, rule.quorum))
  if (rule.when === undefined) return problems
  const when = compileExpression(rule.when, WHEN_VARIABLES)
  if (typeof when === 'string') problems.push({ path: 'when', why: when })
  return problems
}
