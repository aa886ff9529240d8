import type { Static, TObject } from 'typebox'
import { Check, Errors } from 'typebox/value'
import type { CallSignal } from '../call.ts'
import type { Denial } from '../denial.ts'
import type { CallRequirements, Identity, Target, ToolLabels } from '../facts.ts'
import type { Outcome } from '../outcome.ts'
import type { Snapshot } from '../snapshot.ts'

/**
 * An MCP server that the gateway is itself, such as `plat-web`. Its calls pass everything that calls of other servers pass; only where
 * those are forwarded its tools run here. Names that begin with `plat-` are kept for such servers.
 */
export interface BuiltinServer {
  /** The name that callers use, with its scope `tools:<name>`; it is also the target's key. */
  readonly name: string
  readonly title: string
  /** What a model should know of the server as a whole. */
  readonly instructions: string
  readonly trust: Target['trust']
  readonly dataClass: Target['dataClass']
  /** Labels of everything that a tool answers; null: of what is no tool, such as the list of tools. */
  labels(tool: string | null): ToolLabels
  /** The tools that this caller has. */
  tools(caller: Caller): readonly BuiltinTool[]
}

/** Who asks, as the pass of its call sees the gateway. */
export interface Caller {
  readonly identity: Identity
  readonly snapshot: Snapshot
}

/** One call of a tool. */
export interface ToolCall extends Caller {
  readonly signal: CallSignal
}

/** A tool as `tools/list` shows it, and what it does. Made by `builtinTool`. */
export interface BuiltinTool {
  readonly name: string
  readonly title: string
  readonly description: string
  /** JSON Schema of the arguments. */
  readonly inputSchema: TObject
  readonly annotations: Readonly<Record<string, boolean>>
  /** Why these arguments must not be used by this caller: known before anything is asked, held or spent. Null: nothing is known. */
  judge(args: unknown, caller: Caller): Denial | null
  /** What these arguments ask for beside the verdict of policy, such as a person. Null: nothing. */
  requirements(args: unknown): CallRequirements | null
  /** What the tool answers; a denial where the call turns out to be one that must not be made. */
  run(args: unknown, call: ToolCall): Promise<ToolResult | Denial>
}

/** What a tool answers: the result of MCP's `tools/call`. */
export interface ToolResult {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[]
  /** The tool failed, in words that a model can act on. */
  readonly isError: boolean
  /** What was reached on the way. */
  readonly attempts: Outcome['attempts']
}

interface ToolParts<Schema extends TObject> extends Omit<BuiltinTool, 'judge' | 'requirements' | 'run'> {
  readonly inputSchema: Schema
  judge?(args: Static<Schema>, caller: Caller): Denial | null
  requirements?(args: Static<Schema>): CallRequirements | null
  run(args: Static<Schema>, call: ToolCall): Promise<ToolResult | Denial>
}

/** A tool whose arguments are checked against its schema: others are answered as a failure of the tool that says what is wrong. */
export function builtinTool<Schema extends TObject>({
  judge,
  requirements,
  run,
  ...presented
}: ToolParts<Schema>): BuiltinTool {
  const { inputSchema } = presented
  return {
    ...presented,
    judge: (args, caller) => (Check(inputSchema, args) ? (judge?.(args, caller) ?? null) : null),
    requirements: (args) => (Check(inputSchema, args) ? (requirements?.(args) ?? null) : null),
    run: async (args, call) => (Check(inputSchema, args) ? run(args, call) : toolFailure(problemOf(inputSchema, args))),
  }
}

function problemOf(schema: TObject, args: unknown): string {
  const [first] = Errors(schema, args)
  const at = first === undefined || first.instancePath === '' ? 'arguments' : `arguments${first.instancePath}`
  // A member that the schema does not name stands against a schema that is `false`.
  return `${at}: ${first?.keyword === 'boolean' ? 'the tool has no such argument' : first?.message}`
}

/** A failure of a tool, in words that a model can act on. */
export function toolFailure(text: string, attempts: Outcome['attempts'] = []): ToolResult {
  return { content: [{ type: 'text', text }], isError: true, attempts }
}

/** What a tool says. */
export function toolText(text: string, attempts: Outcome['attempts'] = []): ToolResult {
  return { content: [{ type: 'text', text }], isError: false, attempts }
}
