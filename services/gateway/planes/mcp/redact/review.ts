import { member } from '@plat/core'
import {
  type Denial,
  deny,
  type Frame,
  type FrameVerdict,
  isDenial,
  type Operation,
  type RedactionScope,
  type Redactor,
} from '../../../call/index.ts'
import type { Review, RunningReview } from '../../../pipeline/stage.ts'
import { createRedactReview, type RedactorOf, redactMessage } from '../../wire/redact.ts'
import { McpFrame } from '../frames/frame.ts'
import { TASK_IDS } from '../tasks/messages.ts'
import { isTask } from '../tasks/status.ts'

/** The parts of a message to the client that may be redacted: not members of the protocol, and not sealed values. */
const MESSAGE: RedactionScope = {
  within: [['result'], ['error'], ['params']],
  except: [
    ['result', 'nextCursor'],
    ['result', 'requestState'],
    ['params', 'progressToken'],
    ['params', 'requestId'],
  ],
}

/** The same for lists, without names that the client uses in requests. */
const LIST: RedactionScope = { ...MESSAGE, left: ['name', 'uri', 'uriTemplate'] }

/** The same for lists of tasks. */
const TASKS: RedactionScope = { ...MESSAGE, left: ['taskId'] }

/** The same for messages that state a task, without its id. */
const TASK: RedactionScope = { ...MESSAGE, except: [...(MESSAGE.except ?? []), ...TASK_IDS] }

/** Redacts messages of servers: results, descriptions in lists, notifications, and requests to the client. */
export function createMessageRedactReview(redactorOf: RedactorOf): Review<'identity' | 'target'> {
  return createRedactReview(
    'mcp',
    redactorOf,
    (redactor, { operation, method }) => new MessageReview(redactor, scopeOf(operation, method)),
  )
}

function scopeOf(operation: Operation, method: string): RedactionScope {
  if (operation === 'mcp.list') return method === 'tasks/list' ? TASKS : LIST
  return operation === 'mcp.task' ? TASK : MESSAGE
}

/** Returns whether a message states a task: a result that creates one, or its status. */
function statesTask(value: unknown): boolean {
  const result = member(value, 'result')
  if (isTask(result) || isTask(member(result, 'task'))) return true
  const method = member(value, 'method')
  return typeof method === 'string' && method.startsWith('notifications/tasks')
}

class MessageReview implements RunningReview {
  readonly #redactor: Redactor | Denial
  readonly #where: RedactionScope

  constructor(redactor: Redactor | Denial, where: RedactionScope) {
    this.#redactor = redactor
    this.#where = where
  }

  frame(frame: Frame): FrameVerdict {
    const redactor = this.#redactor
    if (isDenial(redactor)) return redactor
    if (!(frame instanceof McpFrame)) return deny('internal', 'a message has a form that cannot be redacted')
    const { json } = frame
    if (json === null) return [frame]
    const where = this.#where === MESSAGE && statesTask(frame.value) ? TASK : this.#where
    return redactMessage(redactor, json, where, (redacted) => [redacted === json ? frame : frame.withJson(redacted)])
  }

  end(): FrameVerdict {
    return []
  }
}
