import {
  type Denial,
  deny,
  type Frame,
  type FrameVerdict,
  isDenial,
  type RedactionScope,
  type Redactor,
} from '../../../call/index.ts'
import type { Review, RunningReview } from '../../../pipeline/stage.ts'
import { createRedactReview, type RedactorOf, redactMessage } from '../../wire/redact.ts'
import { McpFrame } from '../frames/frame.ts'

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

/** Redacts messages of servers: results, descriptions in lists, notifications, and requests to the client. */
export function createMessageRedactReview(redactorOf: RedactorOf): Review<'identity' | 'target'> {
  return createRedactReview(
    'mcp',
    redactorOf,
    (redactor, { operation }) => new MessageReview(redactor, operation === 'mcp.list' ? LIST : MESSAGE),
  )
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
    return redactMessage(redactor, json, this.#where, (redacted) => [
      redacted === json ? frame : frame.withJson(redacted),
    ])
  }

  end(): FrameVerdict {
    return []
  }
}
