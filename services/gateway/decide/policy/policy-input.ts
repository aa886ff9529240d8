import { countValues } from '@plat/core'
import { type CelVariables, CostBudget } from '@plat/resources/expression'
import type { Body, Call, Identity, Operation, Target } from '../../call/index.ts'
import { celFromJson, timestampOf } from './values.ts'

/** What a policy is asked: one message of one caller to one target. Rules and engines are told the same. */
export interface PolicyInput {
  readonly identity: Identity
  readonly target: Target
  /** The tool that is judged: `target.tool`, or one entry of a list. */
  readonly tool: string | null
  readonly operation: Operation
  /** The protocol's own word: `tools/call`. */
  readonly method: string
  /** Labels of the session. */
  readonly taints: readonly string[]
  /** What the tool can carry data out to (docs/spec/crds.md, `toolLabels`). */
  readonly sinks: readonly string[]
  /** Bytes of the arguments; null: the message has none; `unknown`: a list, where nobody has called yet, or an answer. */
  readonly args: Uint8Array | null | 'unknown'
  /** The same, where somebody has parsed them: `JSON.parse` semantics. */
  readonly argsValue?: unknown
  /** What is forwarded with them; absent: nothing. `unknown`: a list, where nobody has called yet, or a call that was recorded without it. */
  readonly beside?: Pick<Body, 'inputs' | 'meta'> | 'unknown' | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** The question that a call asks. */
export function questionOf(call: Call<'identity' | 'target' | 'taints'>, now: number): PolicyInput {
  const { identity, target, taints } = call.facts
  return {
    identity,
    target,
    tool: target.tool,
    operation: call.operation,
    method: call.method,
    taints: taints.labels,
    sinks: target.labels.sinks,
    args: argumentsOf(call),
    argsValue: call.body?.argsValue,
    beside: call.body ?? undefined,
    now,
  }
}

/** An answer is judged as the call in which the server asked, whose arguments are gone. */
function argumentsOf({ operation, body }: Call): PolicyInput['args'] {
  if (operation === 'mcp.answer') return 'unknown'
  return body === null ? null : body.args
}

/** Who is shown one entry of a `tools/list`, and what is known of it. */
export interface ListedTool {
  readonly identity: Identity
  readonly target: Target
  /** Labels of the session. */
  readonly taints: readonly string[]
  /** Of this entry. */
  readonly sinks: readonly string[]
}

/** The question for one entry of a `tools/list`: as if it were called, with arguments that nobody knows. */
export function questionOfTool(shown: ListedTool, tool: string, now: number): PolicyInput {
  const { identity, target, taints, sinks } = shown
  const asked = { operation: 'mcp.call', method: 'tools/call', args: 'unknown', beside: 'unknown' } as const
  return { ...asked, identity, target, tool, taints, sinks, now }
}

/** Who is shown a list. */
export interface Listing extends Omit<ListedTool, 'sinks'> {
  /** What a tool of the list can carry data out to. */
  sinksOf(tool: string): readonly string[]
}

/** The question for a list as a whole, which an engine beside the gateway is asked once. */
export function questionOfList({ identity, target, taints }: Listing, now: number): PolicyInput {
  const asked = { operation: 'mcp.list', method: 'tools/list', args: 'unknown', beside: 'unknown' } as const
  return { ...asked, identity, target, taints, tool: null, sinks: [], now }
}

/** What making a value of CEL, or a key of a map, costs in units of the budget. */
const VALUE_COST = 120

/**
 * CEL variables of one question, each computed when the first expression asks for it and kept for the next, with the budget of all
 * expressions that are evaluated with them.
 * @throws SyntaxError when the arguments are not JSON; the caller treats that as an evaluation error. BudgetExceededError when they hold
 * more values than the budget allows.
 */
export class Variables {
  readonly budget = new CostBudget()
  readonly #input: PolicyInput
  readonly #known: { [name: string]: CelVariables[string] } = {}

  constructor(input: PolicyInput) {
    this.#input = input
  }

  /** Binds what `mentions` names, and nothing else. */
  bind(mentions: ReadonlySet<string>): CelVariables {
    for (const name of mentions) {
      if (!Object.hasOwn(this.#known, name)) this.#known[name] = variable(name, this.#input, this.budget)
    }
    return this.#known
  }
}

function variable(name: string, input: PolicyInput, budget: CostBudget): CelVariables[string] {
  switch (name) {
    case 'args':
      return input.args === null || input.args === 'unknown' ? new Map() : celOf(input.args, budget, input.argsValue)
    case 'inputResponses':
      return besideMap(input, 'inputs', budget)
    case 'meta':
      return besideMap(input, 'meta', budget)
    case 'identity':
      return identityMap(input.identity)
    case 'target':
      return targetMap(input.target, input.tool)
    case 'taints':
      return input.taints
    case 'method':
      return input.method
    case 'now':
      return timestampOf(input.now)
    default:
      return null
  }
}

/** Charges for the values before it makes them. */
function celOf(bytes: Uint8Array, budget: CostBudget, parsed?: unknown): CelVariables[string] {
  budget.spend(VALUE_COST * countValues(bytes, budget.left / VALUE_COST))
  return celFromJson(bytes, parsed)
}

function besideMap({ beside }: PolicyInput, name: 'inputs' | 'meta', budget: CostBudget): CelVariables[string] {
  const bytes = beside === 'unknown' ? null : (beside?.[name] ?? null)
  return bytes === null ? new Map() : celOf(bytes, budget)
}

/** Whether an expression that mentions these asks for what is not known of the message. */
export function asksForUnknown({ args, beside }: PolicyInput, mentions: ReadonlySet<string>): boolean {
  if (args === 'unknown' && mentions.has('args')) return true
  return beside === 'unknown' && (mentions.has('inputResponses') || mentions.has('meta'))
}

function identityMap(identity: Identity): ReadonlyMap<string, CelVariables[string]> {
  return new Map<string, CelVariables[string]>([
    ['namespace', identity.namespace],
    ['agent', identity.agent],
    ['session', identity.session],
    ['user', identity.user],
    ['groups', identity.groups],
    ['tier', identity.tier],
    ['scopes', [...identity.scopes]],
    ['verified', identity.verified],
    ['chain', identity.chain],
  ])
}

function targetMap(target: Target, tool: string | null): ReadonlyMap<string, CelVariables[string]> {
  return new Map<string, CelVariables[string]>([
    ['server', target.server],
    ['tool', tool],
    ['skill', skillOf(tool)],
    ['route', target.kind === 'model' ? target.key : null],
    ['model', target.kind === 'model' ? tool : null],
    ['dataClass', target.dataClass],
    ['trust', target.trust],
    ['jurisdiction', target.jurisdiction],
  ])
}

const SKILL_PREFIX = 'skill:'

/** The skill of an agent-to-agent target, whose tool reads `skill:<id>`; null for every other. */
export function skillOf(tool: string | null): string | null {
  return tool?.startsWith(SKILL_PREFIX) === true ? tool.slice(SKILL_PREFIX.length) : null
}
