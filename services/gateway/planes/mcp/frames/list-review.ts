import { checkJson, findSpan, parseLossless } from '@plat/core'
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

/** Which of the tools of a list are shown, in their order; `json` holds the whole message. */
type JudgeList = (call: ListCall, tools: readonly unknown[], json: Uint8Array) => readonly boolean[]

/** Filters `tools/list` by policy: what a caller may not call, it does not see. Bytes of the tools that stay are untouched. */
export function createListReview(judge: JudgeTool): Review<'identity' | 'target'> {
  return listReview('policy', (call, tools) =>
    // A tool without a name cannot be judged, and is hidden.
    tools.map((tool) => isObject(tool) && typeof tool.name === 'string' && judge(call, tool.name)),
  )
}

/** Filters `tools/list` by pins. `judge` is given the tools with the source text of their numbers. */
export function createPinReview(
  judge: (call: ListCall, tools: readonly unknown[]) => readonly boolean[],
): Review<'identity' | 'target'> {
  return listReview('pins', (call, _, json) => {
    const tools = member(member(parseLossless(json), 'result'), 'tools')
    return judge(call, Array.isArray(tools) ? tools : [])
  })
}

function listReview(name: 'policy' | 'pins', judge: JudgeList): Review<'identity' | 'target'> {
  return {
    name,
    needs: ['identity', 'target'],
    // Lists of resources and prompts, discovery: their names are governed when they are used.
    open: (call) => (call.method === 'tools/list' ? new ListFilter(call, judge) : null),
  }
}

const TOOLS = Buffer.from('"tools"')

class ListFilter implements Running {
  readonly #call: Call<'identity' | 'target'>
  readonly #judge: JudgeList

  constructor(call: Call<'identity' | 'target'>, judge: JudgeList) {
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
    const shown = this.#judge(this.#call, tools, json)
    const span = findSpan(json, ['result', 'tools'])
    if (span === null) return [frame]
    const kept = keepElements(json, span, (index) => shown[index] === true)
    // Whatever it shows, the list was made for this caller.
    const told = member(member(frame.value, 'result'), 'cacheScope') === undefined ? kept : privately(kept)
    return [told === json ? frame : frame.withJson(told)]
  }
}
