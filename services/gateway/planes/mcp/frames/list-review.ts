import { findSpan, isObject, member, parseLossless, whenReady, withoutElements } from '@plat/core'
import {
  type Call,
  deny,
  type Frame,
  type FrameVerdict,
  type Identity,
  type Snapshot,
  type Target,
} from '../../../call/index.ts'
import type { Review, RunningReview } from '../../../pipeline/stage.ts'
import { McpFrame } from './frame.ts'
import { privately } from './seals.ts'

/** Returns which tools of a list the caller may see, by name. Called once per list; if it throws, the whole list is refused. */
export type JudgeTools = (call: ListCall, tools: readonly string[]) => Visibility

/** A list call, as passed to a judge. */
export interface ListCall {
  readonly snapshot: Snapshot
  readonly facts: { readonly identity: Identity; readonly target: Target }
}

/** For each tool, whether it is visible. */
type Visibility = readonly boolean[] | Promise<readonly boolean[]>

/** The same by the entries of the list, which need not have a name; `json` is the whole message. */
type JudgeList = (call: ListCall, tools: readonly unknown[], json: Uint8Array) => Visibility

/** Filters `tools/list` by policy, so that a caller sees only tools that it may call. Bytes of the remaining tools are unchanged. */
export function createListReview(judge: JudgeTools): Review<'identity' | 'target'> {
  return listReview('policy', (call, tools) => {
    const names = tools.map((tool) => (isObject(tool) && typeof tool.name === 'string' ? tool.name : null))
    // A tool without a name cannot be judged, so it is hidden.
    const hidden = (visible: readonly boolean[]) => names.map((name, at) => name !== null && visible[at] === true)
    const visible = judge(
      call,
      names.map((name) => name ?? ''),
    )
    return whenReady(visible, hidden)
  })
}

/** Filters `tools/list` by pins. `judge` gets the tools with the source text of their numbers. */
export function createPinReview(
  judge: (call: ListCall, tools: readonly unknown[]) => Promise<readonly boolean[]>,
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
    // Names in lists of resources and prompts and in a discovery are checked when they are used.
    open: (call) => (call.method === 'tools/list' ? new ListFilter(call, judge) : null),
  }
}

class ListFilter implements RunningReview {
  readonly #call: Call<'identity' | 'target'>
  readonly #judge: JudgeList

  constructor(call: Call<'identity' | 'target'>, judge: JudgeList) {
    this.#call = call
    this.#judge = judge
  }

  frame(frame: Frame): FrameVerdict {
    if (!(frame instanceof McpFrame)) return deny('internal', 'a list has a form that cannot be filtered')
    if (frame.json === null) return [frame]
    const tools = member(member(frame.value, 'result'), 'tools')
    if (tools === undefined) return [frame]
    if (!Array.isArray(tools)) return deny('upstream_error', 'the server sent a tool list that is not an array')
    return this.#filtered(frame, frame.json, tools)
  }

  end(): FrameVerdict {
    return []
  }

  #filtered(frame: McpFrame, json: Uint8Array, tools: readonly unknown[]): FrameVerdict {
    return whenReady(this.#judge(this.#call, tools, json), only, frame, json)
  }
}

/** Returns the message with only the visible tools. */
function only(visible: readonly boolean[], frame: McpFrame, json: Uint8Array): readonly Frame[] {
  const span = findSpan(json, ['result', 'tools'])
  if (span === null) return [frame]
  const filtered = withoutElements(json, span[0], (index) => visible[index] === true)
  // The list is specific to this caller even if no tool was removed.
  const marked = member(member(frame.value, 'result'), 'cacheScope') === undefined ? filtered : privately(filtered)
  return [marked === json ? frame : frame.withJson(marked)]
}
