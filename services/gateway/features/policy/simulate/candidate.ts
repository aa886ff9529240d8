import type { Cedar } from '@plat/resources/cedar'
import { compileExpression } from '@plat/resources/expression'
import { type PolicyFile, type RuleEntry, WHEN_VARIABLES } from '@plat/resources/rendered'
import type { Decision } from '../../../call/index.ts'
import { compilePolicies, type PolicySet } from '../compile.ts'
import { judge } from '../judge.ts'
import type { PolicyInput } from '../question.ts'

/** Rules of a candidate at most: making them ready takes the time of a reload. */
const MAX_RULES = 5_000

/** What a candidate says of a call. */
export interface Judgement {
  /** Null: it depends on arguments that nobody knows. */
  readonly decision: Decision | null
  readonly possible: readonly Decision['action'][]
}

/**
 * Policies that are not in force. Where arguments are not known, every rule that asks for them may match or not: the strictest rule that
 * matches decides, so it is enough to judge without all of them, and with all of those that share an action.
 */
export class Candidate {
  readonly #set: PolicySet
  readonly #without: readonly PolicySet[]
  /** `<namespace>/<agent>` whose Cedar texts ask for arguments. */
  readonly #cedarAsks: ReadonlySet<string>

  private constructor(set: PolicySet, without: readonly PolicySet[], cedarAsks: ReadonlySet<string>) {
    this.#set = set
    this.#without = without
    this.#cedarAsks = cedarAsks
  }

  /** Lists what is wrong with the policies, a line each. */
  static compile(file: PolicyFile, cedar: Cedar | null): Candidate | readonly string[] {
    const count = file.policies.reduce((sum, { rules }) => sum + rules.length, 0)
    if (count > MAX_RULES) return [`policies: ${count} rules; a candidate has at most ${MAX_RULES}`]
    const compiled = compilePolicies(file, cedar)
    if ('problems' in compiled) return compiled.problems
    const broken = compiled.set.cedars.filter(({ policies }) => policies === null)
    if (broken.length > 0) return broken.map(({ policy, fault }) => `the Cedar text of ${policy}: ${fault}`)
    const asks = file.policies.some(({ rules }) => rules.some(asksForArguments))
    const variants = asks ? [null, ...ACTIONS] : []
    const without = variants.map((action) => compiledWith(file, action, cedar))
    const cedarAsks = file.policies.filter((policy) => ASKS_CEDAR.test(policy.cedar))
    const agents = cedarAsks.flatMap(({ namespace, agents: names }) => names.map((name) => `${namespace}/${name}`))
    return new Candidate(compiled.set, without, new Set(agents))
  }

  judge(input: PolicyInput): Judgement {
    const decision = judge(this.#set, input)
    if (input.args !== 'unknown') return { decision, possible: [decision.action] }
    const { namespace, agent } = input.identity
    if (this.#cedarAsks.has(`${namespace}/${agent}`)) return { decision: null, possible: ACTIONS }
    const decisions = this.#without.length === 0 ? [decision] : this.#without.map((set) => judge(set, input))
    const found = new Set(decisions.map(({ action }) => action))
    const possible = ACTIONS.filter((action) => found.has(action))
    return { decision: possible.length === 1 ? (decisions[0] ?? decision) : null, possible }
  }
}

const ACTIONS = ['allow', 'require_approval', 'deny'] as const
/** A text that only speaks of them asks as well: then somebody looks in vain, and nobody is misled. */
const ASKS_CEDAR = /\bargs\b/

function asksForArguments({ when }: RuleEntry): boolean {
  const expression = when === undefined ? null : compileExpression(when, WHEN_VARIABLES)
  return expression !== null && typeof expression !== 'string' && expression.mentions.has('args')
}

/** The same policies in which rules that ask for arguments match always where they have this action, and else never. */
function compiledWith(file: PolicyFile, action: RuleEntry['action'] | null, cedar: Cedar | null): PolicySet {
  const policies = file.policies.map((policy) => ({
    ...policy,
    rules: policy.rules.map((rule) => (asksForArguments(rule) ? fixed(rule, rule.action === action) : rule)),
  }))
  const compiled = compilePolicies({ ...file, policies }, cedar)
  if ('problems' in compiled) throw new Error(`the same policies do not compile: ${compiled.problems.join('; ')}`)
  return compiled.set
}

/** No server has this name. The rule stays, so that a policy with a Cedar text is still one with rules. */
const NOWHERE = { servers: ['\0'] }

function fixed({ when: _, ...rule }: RuleEntry, matches: boolean): RuleEntry {
  return matches ? rule : { ...rule, match: NOWHERE }
}
