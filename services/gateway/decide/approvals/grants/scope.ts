import { hash } from 'node:crypto'
import { type DecidedCall, isRequiredByPolicy } from '../decided-call.ts'
import type { ApprovalRule } from '../quorum/quorum.ts'

/**
 * Returns the digest of what an approval for a session covers: the session with its user, the tool of one server with its definition, the rule with its
 * text, and all approval rules that apply. Returns null for a call that only an approval of this call can let pass: no rule of
 * a policy requires it alone, or it calls no tool.
 */
export function scopeOf(call: DecidedCall, rules: readonly ApprovalRule[]): string | null {
  const { identity, target, pin, decision } = call.facts
  const { ruleSha256 } = decision
  if (call.operation !== 'mcp.call' || target.tool === null || ruleSha256 === undefined) return null
  if (!isRequiredByPolicy(call)) return null
  const { tenant, namespace, agent, session, issuer, user } = identity
  const names = rules.map(({ policy, rule }) => [policy, rule]).toSorted((a, b) => (`${a}` < `${b}` ? -1 : 1))
  const who = [tenant, namespace, agent, session, issuer, user]
  const covered = [who, target.key, target.tool, pin?.digest ?? null, ruleSha256, names]
  return hash('sha256', JSON.stringify(covered), 'hex')
}
