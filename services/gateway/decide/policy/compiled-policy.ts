import type { Expression } from '@plat/resources/expression'
import type { RuleEntry } from '@plat/resources/rendered'
import type { Decision } from '../../call/index.ts'
import type { Matcher } from './rules/conditions.ts'
import type { Rate } from './rules/rates.ts'
import type { RuleIndex } from './rules/rule-index.ts'

/** A compiled rule. Its decision is built once, not per call. */
export interface CompiledRule {
  readonly action: RuleEntry['action']
  /** Strictest first: the order of rules never matters. */
  readonly strictness: number
  readonly decision: Decision
  readonly when: Expression | null
  /** Rate that each matching call uses, whichever rule decides; null: none. */
  readonly rate: Rate | null
}

export interface CompiledPolicy {
  readonly name: string
  readonly rules: RuleIndex<CompiledRule>
  /** Rules that require an approval, with their full conditions: the index may leave out rules that another makes redundant. */
  readonly asking: readonly ApprovalRule[]
  readonly byDefault: Decision
}

export interface ApprovalRule {
  /** `<namespace>/<name>` */
  readonly policy: string | null
  readonly rule: string | null
  /** Quorum of the rule; null: the default. */
  readonly quorum: NonNullable<RuleEntry['quorum']> | null
  /** Null: matches every message. */
  readonly matches: Matcher | null
  readonly when: Expression | null
}
