import {
  type Body,
  type Denial,
  deny,
  type Frame,
  isDenial,
  type Passed,
  type Redactor,
  type Where,
} from '../../call/index.ts'
import type { Review, Running } from '../../pipeline/stage.ts'
import { createRedactReview, type RedactorOf } from '../wire/redact.ts'
import { A2aFrame } from './frame.ts'
import { A2aBody } from './request.ts'

/** Members by which tasks, messages and artifacts are found again; all are the protocol's. */
const IDS = ['taskId', 'contextId', 'messageId', 'artifactId']

/** What of a request may be looked at and changed: what it says, not what the protocol says. */
const REQUEST: Where = {
  within: [['params']],
  except: [
    ['params', 'id'],
    ['params', 'pageToken'],
    ['params', 'message', 'role'],
  ],
  // It names what is called.
  fixed: [['params', 'message', 'metadata', 'skillId']],
  left: IDS,
}

/** The same of an answer. */
const RESPONSE: Where = {
  within: [['result'], ['error']],
  except: [
    ['result', 'id'],
    ['result', 'nextPageToken'],
    ['result', 'task', 'id'],
    ['error', 'code'],
  ],
  left: IDS,
}

/** Where the texts of this plane's requests stand. */
export const a2aTexts = {
  where: REQUEST,
  rewritten: (_: Body, bytes: Uint8Array): Body => new A2aBody(bytes),
  repeated: () => [],
}

/** Redacts what agents answer. */
export function createAgentRedactReview(redactorOf: RedactorOf): Review<'identity' | 'target'> {
  return createRedactReview('a2a', redactorOf, (redactor) => new AnswerReview(redactor))
}

class AnswerReview implements Running {
  readonly #redactor: Redactor | Denial

  constructor(redactor: Redactor | Denial) {
    this.#redactor = redactor
  }

  frame(frame: Frame): Passed {
    const redactor = this.#redactor
    if (isDenial(redactor)) return redactor
    if (!(frame instanceof A2aFrame)) return deny('internal', 'an answer came in a form that cannot be redacted')
    if (frame.json === null) return [frame]
    const told = redactor.json(frame.json, RESPONSE)
    if (isDenial(told)) return told
    return [told === frame.json ? frame : frame.withJson(told)]
  }

  end(): Passed {
    return []
  }
}
