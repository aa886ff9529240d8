import type { Static, TObject } from 'typebox'
import { Check, Errors } from 'typebox/value'
import type { CallSignal } from '../call.ts'
import type { Denial } from '../denial.ts'
import type { CallRequirements, Identity, Target, ToolLabels } from '../facts.ts'
import type { Outcome } from '../outcome.ts'
import type { CountHit } from '../redactor.ts'
import type { Snapshot } from '../snapshot.ts'

/**
 * An MCP server that the gateway implements, such as `plat-web`. Its calls pass the same stages as those of other servers, but its
 * tools run in the gateway instead of being forwarded. Names that begin with `plat-` are reserved for such servers.
 */
export interface BuiltinServer {
  /** The name that callers use; its scope is `tools:<name>`. Also the key of the target. */
  readonly name: string
  readonly title: string
  /** Instructions for models (`instructions` of `initialize`). */
  readonly instructions: string
  readonly trust: Target['trust']
  readonly dataClass: Target['dataClass']
  /** If true, its tools call the upstream at the URL of its target; otherwise the gateway does their work. */
  readonly isRemote?: boolean
  /** Returns the taint labels of all results of a tool; null: of other responses, such as the list of tools. */
  labels(tool: string | null): ToolLabels
  tools(caller: Caller): readonly BuiltinTool[]
}

/** The caller, with the snapshot of its call. */
export interface Caller {
  readonly identity: Identity
  readonly snapshot: Snapshot
}

export interface ToolCall extends Caller {
  readonly signal: CallSignal
  /** The arguments as received; null: there are none. */
  readonly argsJson: Uint8Array | null
  /** Counts bytes that stay in memory until the call has ended. Returns false when the limit is reached. */
  retain(bytes: number): boolean
  /** See `Call`. */
  readonly countHit?: CountHit | undefined
}

/** A tool: its definition in `tools/list`, and its implementation. Created by `builtinTool`. */
export interface BuiltinTool {
  readonly name: string
  readonly title: string
  readonly description: string
  /** JSON Schema of the arguments. */
  readonly inputSchema: object
  /** JSON Schema of `structuredContent`; absent: it is not stated. */
  readonly outputSchema?: object
  readonly annotations: Readonly<Record<string, boolean>>
  /** Returns a denial if this caller must not use these arguments. Runs before policy, approvals and budgets. */
  judge(args: unknown, caller: Caller): Denial | null
  /** Returns the requirements of a call with these arguments in addition to policy, such as an approval; null: none. */
  requirements(args: unknown): CallRequirements | null
  /** Runs the tool. Resolves to its result, or a denial when the call proves not to be permitted. */
  run(args: unknown, call: ToolCall): Promise<ToolResult | Denial>
}

export interface ToolResult {
  readonly content: readonly { readonly type: 'text'; readonly text: string }[]
  /** The result as an object for programs; absent: only `content`. */
  readonly structuredContent?: object
  /** The tool failed; `content` describes the failure for the model. */
  readonly isError: boolean
  /** Upstream requests that the tool made. */
  readonly attempts: Outcome['attempts']
}

interface ToolParts<Schema extends TObject>
  extends Omit<BuiltinTool, 'inputSchema' | 'judge' | 'requirements' | 'run'> {
  readonly inputSchema: Schema
  judge?(args: Static<Schema>, caller: Caller): Denial | null
  requirements?(args: Static<Schema>): CallRequirements | null
  run(args: Static<Schema>, call: ToolCall): Promise<ToolResult | Denial>
}

/** Returns a tool whose arguments are validated against its schema: for invalid ones `run` resolves to a tool failure with the reason. */
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
  // An unknown member is validated against the schema `false`.
  return `${at}: ${first?.keyword === 'boolean' ? 'the tool has no such argument' : first?.message}`
}

/** Returns a tool failure with a text on which a model can act. */
export function toolFailure(text: string, attempts: Outcome['attempts'] = []): ToolResult {
  return { content: [{ type: 'text', text }], isError: true, attempts }
}

export function toolText(text: string, attempts: Outcome['attempts'] = []): ToolResult {
  return { content: [{ type: 'text', text }], isError: false, attempts }
}
