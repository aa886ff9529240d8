import { findSpan, isObject, member, whenReady, withoutElements } from '@plat/core'
import {
  type Call,
  type Denial,
  deny,
  type Frame,
  type FrameVerdict,
  type Identity,
  type Message,
  type WireRequest,
} from '../../../call/index.ts'
import type { Review, RunningReview } from '../../../pipeline/stage.ts'
import { McpFrame } from '../frames/frame.ts'
import { inputRequest } from '../frames/seals.ts'
import { type McpRequest, requestMethodOf, resultOf } from '../message.ts'
import { withSharedTaskIds } from './messages.ts'
import { createdTask, declaresTasks, isTask, RELATED_TASK, stateOf } from './status.ts'
import { type CancelledTask, type McpTasks, statusMessage } from './tasks.ts'

export interface TaskReviewOptions {
  readonly tasks: Pick<McpTasks, 'find' | 'bind' | 'changes'>
  /** Returns the request of a call that the plane has read. */
  readonly requestOf: (wire: WireRequest) => McpRequest | undefined
  /** Cancels a task of the call's caller at its server. */
  readonly cancel: (call: Call, task: CancelledTask, owner: Identity) => Promise<boolean>
}

type TaskCall = Call<'identity' | 'target'>

/**
 * Binds tasks to the session whose call created them, durably before the session gets their ids. A response about a task must be about the
 * requested one, and lists have only tasks of the session. Each state of a task that was not seen before is recorded.
 */
export function createTaskReview(options: TaskReviewOptions): Review<'identity' | 'target'> {
  return {
    name: 'bind',
    needs: ['identity', 'target'],
    open(call) {
      if (!call.operation.startsWith('mcp.')) return null
      const request = options.requestOf(call.wire)
      return request !== undefined && mayStateTasks(call, request) ? new TaskReview(options, call, request) : null
    },
  }
}

function mayStateTasks({ body }: TaskCall, request: McpRequest): boolean {
  const method = requestMethodOf(request)
  if (method !== 'tools/call') return method.startsWith('tasks/')
  if (request.kind === 'listen') return true
  return request.era === 'modern'
    ? declaresTasks(body?.value)
    : member(member(body?.value, 'params'), 'task') !== undefined
}

class TaskReview implements RunningReview {
  readonly #options: TaskReviewOptions
  readonly #call: TaskCall
  readonly #request: McpRequest
  readonly #method: string

  constructor(options: TaskReviewOptions, call: TaskCall, request: McpRequest) {
    this.#options = options
    this.#call = call
    this.#request = request
    this.#method = requestMethodOf(request)
  }

  frame(frame: Frame): FrameVerdict {
    if (!(frame instanceof McpFrame)) return deny('internal', 'a message has a form in which tasks cannot be bound')
    const result = frame.role === 'final' ? resultOf(frame.value) : null
    if (frame.json === null || result === null) return [frame]
    if (this.#method === 'tasks/list') return this.#listed(frame, frame.json, result)
    return this.#method === 'tools/call' ? this.#created(frame, result) : this.#stated(frame, frame.json, result)
  }

  end(): FrameVerdict {
    return []
  }

  #created(frame: McpFrame, result: unknown): FrameVerdict {
    const created = createdTask(result, this.#request.era)
    if (created === null) return [frame]
    const { task } = created
    if (!isTask(task)) return this.#odd('created a task without a valid id and status')
    const state = stateOf(task)
    const id = task.taskId
    const bound = this.#options.tasks.bind(this.#call, this.#request, { id, state })
    const message = statusMessage(this.#method, id, state)
    return whenReady(bound, (denial) =>
      denial === null ? [this.#relayed(frame, [message])] : this.#refused(denial, id),
    )
  }

  /** A task that gets no owner can be read by no caller, so it is cancelled. One of another owner is not. */
  #refused(denial: Denial, id: string): Denial {
    const { identity, target } = this.#call.facts
    if (denial.code === 'upstream_error') return denial
    const { server } = this.#call
    const { revision, session } = this.#request
    void this.#options.cancel(this.#call, { server, target: target.key, revision, id, session }, identity)
    return denial
  }

  #stated(frame: McpFrame, json: Uint8Array, result: unknown): FrameVerdict {
    const { task: owned } = this.#request
    const stated = member(result, 'taskId') ?? member(member(member(result, '_meta'), RELATED_TASK), 'taskId')
    if (owned === undefined || (stated !== undefined && stated !== owned.id))
      return this.#odd('responded about another task')
    const state = this.#stateIn(result)
    const isNew = state !== null && this.#options.tasks.changes(owned, state)
    const messages = isNew ? [statusMessage(this.#method, owned.id, state), ...requestsIn(json, result)] : []
    return [this.#relayed(frame, messages)]
  }

  /** The result of `tasks/result` is that of the call, whose task has ended. */
  #stateIn(result: unknown): string | null {
    if (this.#method === 'tasks/result') return member(result, 'isError') === true ? 'failed' : 'completed'
    return isTask(result) ? stateOf(result) : null
  }

  #listed(frame: McpFrame, json: Uint8Array, result: unknown): FrameVerdict {
    const list = member(result, 'tasks')
    const span = findSpan(json, ['result', 'tasks'])
    if (!Array.isArray(list) || span === null) return this.#odd('sent a list of tasks that is not an array')
    const { identity, target } = this.#call.facts
    const owned = list.map((task) =>
      isTask(task) ? this.#options.tasks.find(identity, target.key, task.taskId) : null,
    )
    const messages = owned.flatMap((known, index) => {
      const task: unknown = list[index]
      if (known === null || !isTask(task) || !this.#options.tasks.changes(known, stateOf(task))) return []
      return [statusMessage(this.#method, known.id, stateOf(task))]
    })
    const filtered = withoutElements(json, span[0], (index) => owned[index] !== null)
    return [(filtered === json ? frame : frame.withJson(filtered)).asking(messages)]
  }

  /** Returns a response as the client must read it, which differs at the address of all servers. */
  #relayed(frame: McpFrame, messages: readonly Message[]): McpFrame {
    const { shared } = this.#request
    const asking = messages.length === 0 ? frame : frame.asking([...frame.messages, ...messages])
    if (shared === null || asking.json === null) return asking
    const json = withSharedTaskIds(asking.json, asking.value, shared.prefix)
    return json === asking.json ? asking : asking.withJson(json)
  }

  #odd(problem: string): Denial {
    return deny('upstream_error', `${this.#call.server} ${problem}`)
  }
}

/** Returns the requests of the server to the client that a task waits for. */
function requestsIn(json: Uint8Array, result: unknown): readonly Message[] {
  const requests = member(result, 'inputRequests')
  return isObject(requests) ? Object.keys(requests).map((name) => inputRequest(json, requests[name], name)) : []
}
