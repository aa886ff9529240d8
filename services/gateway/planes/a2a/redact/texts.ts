import type { Body, RedactionScope } from '../../../call/index.ts'
import { A2aBody } from '../request.ts'

/** Members by which tasks, messages and artifacts are found again; all are the protocol's. */
const IDS = ['taskId', 'contextId', 'messageId', 'artifactId']

/** What of a request may be looked at and changed: what it says, not what the protocol says. */
const REQUEST: RedactionScope = {
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

/** What of an answer may be looked at and changed, likewise. */
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

/** Where the texts of this plane's requests stand. */
export const a2aTexts = {
  where: REQUEST,
  rewritten: (_: Body, bytes: Uint8Array): Body => new A2aBody(bytes),
  repeated: () => [],
}
