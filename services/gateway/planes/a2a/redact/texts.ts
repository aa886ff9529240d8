import type { Body, RedactionScope } from '../../../call/index.ts'
import { A2aBody } from '../request.ts'

/** Members with ids of tasks, messages and artifacts. */
const IDS = ['taskId', 'contextId', 'messageId', 'artifactId']

/** The parts of a request that may be redacted: not members of the protocol. */
const REQUEST: RedactionScope = {
  within: [['params']],
  except: [
    ['params', 'id'],
    ['params', 'pageToken'],
    ['params', 'message', 'role'],
  ],
  // It names the target.
  fixed: [['params', 'message', 'metadata', 'skillId']],
  left: IDS,
}

/** The parts of a response that may be redacted. */
export const RESPONSE: RedactionScope = {
  within: [['result'], ['error']],
  except: [
    ['result', 'id'],
    ['result', 'nextPageToken'],
    ['result', 'task', 'id'],
    ['error', 'code'],
  ],
  left: IDS,
}

export const a2aTexts = {
  where: REQUEST,
  rewritten: (_: Body, bytes: Uint8Array): Body => new A2aBody(bytes),
  repeated: () => [],
}
