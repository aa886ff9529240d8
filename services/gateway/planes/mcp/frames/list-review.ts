import { checkJson, findSpan } from '@plat/core'
import {
  type Call,
  deny,
  type Frame,
  type Identity,
  type Passed,
  type Snapshot,
  type Target,
} from '../../../call/index.ts'
import type { Review, Running } from '../../../pipeline/stage.ts'
import { isObject, member } from '../../wire/json.ts'
import { keepElements } from '../capabilities.ts'
import { McpFrame, mentions } from './frame.ts'
import { privately } from './seals.ts'

/** Whether a list shows a tool to this caller. Asked once a tool; a throw hides the whole list. */
export type JudgeTool = (call: ListCall, tool: string) => boolean

/** What a judge sees of a list call. */
export interface ListCall {
  readonly snapshot: Snapshot
  readonly facts: { readonly identity: Identity; readonly target: Target }
}

/** Filters `tools/list` by policy: what a caller may not call, it does not see. Bytes of the tools that stay are untouched. */
export function createListReview(judge: JudgeTool): Review<'identity' | 'target'> {
  return {
    name: 'policy',
    needs: ['identity', 'target'],
    // Lists of resources and prompts, discovery: their names are governed when they are used.
    open: (call) => (call.method === 'tools/list' ? new ListFilter(call, judge) : null),
  }
}

const TOOLS = Buffer.from('"tools"')

class ListFilter implements Running {
  readonly #call: Call<'identity' | 'target'>
  readonly #judge: JudgeTool

  constructor(call: Call<'identity' | 'target'>, judge: JudgeTool) {
    this.#call = call
    this.#judge = judge
  }

  frame(frame: Frame): Passed {
    if (!(frame instanceof McpFrame)) return deny('internal', 'a list came in a form that cannot be filtered')
    if (frame.json === null || !mentions(frame.json, TOOLS)) return [frame]
    const tools = member(member(frame.value, 'result'), 'tools')
    if (tools === undefined) return [frame]
    if (!Array.isArray(tools)) return deny('upstream_error', 'the server sent a tool list that is no array')
    return this.#filtered(frame, frame.json, tools)
  }

  end(): Passed {
    return []
  }

  #filtered(frame: McpFrame, json: Uint8Array, tools: readonly unknown[]): Passed {
    try {
      // Two members of one name would show the client another list than the one that was judged.
      checkJson(json)
    } catch {
      return deny('upstream_error', 'the server sent a tool list that is not strict JSON')
    }
    const shown = tools.map((tool) => this.#shows(tool))
    const span = findSpan(json, ['result', 'tools'])
    if (span === null) return [frame]
    const kept = keepElements(json, span, (index) => shown[index] === true)
    // Whatever it shows, the list was made for this caller.
    const told = member(member(frame.value, 'result'), 'cacheScope') === undefined ? kept : privately(kept)
    return [told === json ? frame : frame.withJson(told)]
  }

  /** A tool without a name cannot be judged, and is hidden. */
  #shows(tool: unknown): boolean {
    const name = isObject(tool) ? tool.name : undefined
    return typeof name === 'string' && this.#judge(this.#call, name)
  }
}
