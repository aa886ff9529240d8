import { countValues } from '@plat/core'
import { type CelVariables, CostBudget } from '@plat/resources/expression'
import type { Body, Call, Identity, Operation, Target } from '../../call/index.ts'
import { celFromJson, timestampOf } from './values.ts'

/** Input of a policy: one message of one caller to one target. Rules and engines get the same. */
export interface PolicyInput {
  readonly identity: Identity
  readonly target: Target
  /** The evaluated tool: `target.tool`, or one entry of a list. */
  readonly tool: string | null
  readonly operation: Operation
  /** Method name of the protocol: `tools/call`. */
  readonly method: string
  /** Labels of the session. */
  readonly taints: readonly string[]
  /** Sinks of the tool (docs/spec/crds.md, `toolLabels`). */
  readonly sinks: readonly string[]
  /** Bytes of the arguments; null: the message has none; `unknown`: an entry of a list, or a reply to the server. */
  readonly args: Uint8Array | null | 'unknown'
  /** The parsed arguments if available: `JSON.parse` semantics. */
  readonly argsValue?: unknown
  /** Content forwarded with the arguments; absent: none. `unknown`: an entry of a list, or a call recorded without it. */
  readonly beside?: Pick<Body, 'inputs' | 'meta'> | 'unknown' | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
}

export function policyInputOf(call: Call<'identity' | 'target' | 'taints'>, now: number): PolicyInput {
  const { identity, target, taints } = call.facts
  // No spread: copying members one by one takes longer than the rest.
  const { operation, method } = call.operation === 'mcp.task' ? TOOL_CALL : call
  return {
    identity,
    target,
    tool: target.tool,
    operation,
    method,
    taints: taints.labels,
    sinks: target.labels.sinks,
    args: argumentsOf(call),
    argsValue: call.body?.argsValue,
    beside: call.body ?? undefined,
    now,
  }
}

/** A request for a task is evaluated as the call that created it. */
const TOOL_CALL = { operation: 'mcp.call', method: 'tools/call' } as const

/** A reply, or a request for a task, belongs to a call whose arguments are gone. */
function argumentsOf({ operation, body }: Call): PolicyInput['args'] {
  if (operation === 'mcp.answer' || operation === 'mcp.task') return 'unknown'
  return body === null ? null : body.args
}

/** Caller and target of one entry of a `tools/list`. */
export interface ListedTool {
  readonly identity: Identity
  readonly target: Target
  /** Labels of the session. */
  readonly taints: readonly string[]
  /** Sinks of this entry. */
  readonly sinks: readonly string[]
}

/** Returns the policy input of one entry of a `tools/list`: a call with unknown arguments. */
export function policyInputOfTool(listed: ListedTool, tool: string, now: number): PolicyInput {
  const { identity, target, taints, sinks } = listed
  const message = { ...TOOL_CALL, args: 'unknown', beside: 'unknown' } as const
  return { ...message, identity, target, tool, taints, sinks, now }
}

/** Caller and target of a list. */
export interface Listing extends Omit<ListedTool, 'sinks'> {
  sinksOf(tool: string): readonly string[]
}

/** Returns the policy input of a list as a whole, for one request to an external engine. */
export function policyInputOfList({ identity, target, taints }: Listing, now: number): PolicyInput {
  const message = { operation: 'mcp.list', method: 'tools/list', args: 'unknown', beside: 'unknown' } as const
  return { ...message, identity, target, taints, tool: null, sinks: [], now }
}

/** Cost of creating a CEL value or map key, in units of the budget. */
const VALUE_COST = 120

/**
 * CEL variables of one question, each computed when the first expression reads it and kept for the next, with the budget of all
 * expressions that are evaluated with them.
 * @throws SyntaxError when the arguments are not JSON; the caller treats that as an evaluation error. BudgetExceededError when they hold
 * more values than the budget allows.
 */
export class Variables {
  readonly budget = new CostBudget()
  /** The first argument that any expression read and the call lacks; null: none. */
  firstMissing: string | null = null
  /** The same of the last expression. */
  missing: string | null = null
  readonly #input: PolicyInput
  readonly #known: { [name: string]: CelVariables[string] } = {}

  constructor(input: PolicyInput) {
    this.#input = input
  }

  onMissing(argument: string): void {
    this.firstMissing ??= argument
    this.missing ??= argument
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

/** Whether an expression with these variables needs unknown parts of the message. */
export function asksForUnknown({ args, beside }: PolicyInput, mentions: ReadonlySet<string>): boolean {
  if (args === 'unknown' && mentions.has('args')) return true
  return beside === 'unknown' && (mentions.has('inputResponses') || mentions.has('meta'))
}

function identityMap(identity: Identity): ReadonlyMap<string, CelVariables[string]> {
  return new Map<string, CelVariables[string]>([
    ['tenant', identity.tenant || null],
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

/** Returns the skill of an agent-to-agent target, whose tool is `skill:<id>`; null for all others. */
export function skillOf(tool: string | null): string | null {
  return tool?.startsWith(SKILL_PREFIX) === true ? tool.slice(SKILL_PREFIX.length) : null
}
