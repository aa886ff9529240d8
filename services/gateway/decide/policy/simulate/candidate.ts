import type { Cedar } from '@plat/resources/cedar'
import { compileExpression } from '@plat/resources/expression'
import { type PolicyFile, type RuleEntry, WHEN_VARIABLES } from '@plat/resources/rendered'
import type { Decision } from '../../../call/index.ts'
import { compilePolicies, type PolicySet } from '../compile.ts'
import { judge } from '../judge.ts'
import type { PolicyInput } from '../policy-input.ts'

/** Maximum number of rules of a candidate: compiling them takes as long as a reload. */
const MAX_RULES = 5_000

/** Result of a candidate for a call. */
export interface CandidateDecision {
  /** Null: it depends on unknown arguments. */
  readonly decision: Decision | null
  readonly possible: readonly Decision['action'][]
}

/**
 * Policies that are not in force. With unknown arguments each rule that reads them may match or not. The strictest matching rule
 * decides, so it suffices to evaluate without these rules, and with all of them that share an action.
 */
export class CandidatePolicies {
  readonly #set: PolicySet
  /** For unknown arguments, and for unknown content forwarded with known arguments. */
  readonly #unknown: Unknowns

  private constructor(set: PolicySet, unknown: Unknowns) {
    this.#set = set
    this.#unknown = unknown
  }

  /** Compiles the policies. Returns the problems, one per line, if there are any. */
  static compile(file: PolicyFile, cedar: Cedar | null): CandidatePolicies | readonly string[] {
    const count = file.policies.reduce((sum, { rules }) => sum + rules.length, 0)
    if (count > MAX_RULES) return [`policies: ${count} rules; a candidate has at most ${MAX_RULES}`]
    const compiled = compilePolicies(file, cedar)
    if ('problems' in compiled) return compiled.problems
    const broken = compiled.set.cedars.filter(({ policies }) => policies === null)
    if (broken.length > 0) return broken.map(({ policy, fault }) => `the Cedar text of ${policy}: ${fault}`)
    const unknown = { args: unknownOf(file, ['args', ...BESIDE], cedar), beside: unknownOf(file, BESIDE, cedar) }
    return new CandidatePolicies(compiled.set, unknown)
  }

  judge(input: PolicyInput): CandidateDecision {
    const decision = judge(this.#set, input)
    if (input.args !== 'unknown' && input.beside !== 'unknown') return { decision, possible: [decision.action] }
    const { without, cedarAsks } = this.#unknown[input.args === 'unknown' ? 'args' : 'beside']
    const { namespace, agent } = input.identity
    if (cedarAsks.has(`${namespace}/${agent}`)) return { decision: null, possible: ACTIONS }
    const decisions = without.length === 0 ? [decision] : without.map((set) => judge(set, input))
    const found = new Set(decisions.map(({ action }) => action))
    const possible = ACTIONS.filter((action) => found.has(action))
    return { decision: possible.length === 1 ? (decisions[0] ?? decision) : null, possible }
  }
}

const ACTIONS = ['allow', 'require_approval', 'deny'] as const
type Unseen = 'args' | 'inputResponses' | 'meta'
/** Variables for content forwarded with the arguments. */
const BESIDE: readonly Unseen[] = ['inputResponses', 'meta']
/** A text match also counts: the result is then incomplete at worst, never wrong. */
const ASKS_CEDAR: Readonly<Record<Unseen, RegExp>> = {
  args: /\bargs\b/,
  inputResponses: /\binputResponses\b/,
  meta: /\bmeta\b/,
}

/** Evaluation of a candidate with some unknown variables. */
interface Unknown {
  /** The policies with rules that read these variables fixed either way; empty: no rule reads them. */
  readonly without: readonly PolicySet[]
  /** `<namespace>/<agent>` with Cedar texts that read them. */
  readonly cedarAsks: ReadonlySet<string>
}

type Unknowns = Readonly<Record<'args' | 'beside', Unknown>>

function unknownOf(file: PolicyFile, names: readonly Unseen[], cedar: Cedar | null): Unknown {
  const asks = (rule: RuleEntry) => asksFor(rule, names)
  const variants = file.policies.some(({ rules }) => rules.some(asks)) ? [null, ...ACTIONS] : []
  const cedarAsks = file.policies.filter(({ cedar: text }) => names.some((name) => ASKS_CEDAR[name].test(text)))
  const agents = cedarAsks.flatMap(({ namespace, agents: own }) => own.map((name) => `${namespace}/${name}`))
  return {
    without: variants.map((action) => compiledWith(file, { action, asks }, cedar)),
    cedarAsks: new Set(agents),
  }
}

function asksFor({ when }: RuleEntry, names: readonly string[]): boolean {
  const expression = when === undefined ? null : compileExpression(when, WHEN_VARIABLES)
  if (expression === null || typeof expression === 'string') return false
  return names.some((name) => expression.mentions.has(name))
}

/** Returns the policies in which rules that read unknown variables always match if they have this action, and never otherwise. */
function compiledWith(
  file: PolicyFile,
  { action, asks }: { readonly action: RuleEntry['action'] | null; readonly asks: (rule: RuleEntry) => boolean },
  cedar: Cedar | null,
): PolicySet {
  const policies = file.policies.map((policy) => ({
    ...policy,
    rules: policy.rules.map((rule) => (asks(rule) ? fixed(rule, rule.action === action) : rule)),
  }))
  const compiled = compilePolicies({ ...file, policies }, cedar)
  if ('problems' in compiled) throw new Error(`the same policies do not compile: ${compiled.problems.join('; ')}`)
  return compiled.set
}

/** No server has this name. The rule remains, so that a policy with a Cedar text still has rules. */
const NOWHERE = { servers: ['\0'] }

function fixed({ when: _, ...rule }: RuleEntry, matches: boolean): RuleEntry {
  return matches ? rule : { ...rule, match: NOWHERE }
}
