import type { Body, Call, Denial, RedactionScope } from '../../../call/index.ts'
import { parsedOrUndefined } from '../../wire/message.ts'
import { mirroredParameters } from '../headers.ts'
import { McpBody } from '../message.ts'

/** The parts of a request that may be redacted: not members of the protocol. */
const REQUEST: RedactionScope = {
  within: [['params'], ['result'], ['error']],
  except: [
    ['params', '_meta', 'progressToken'],
    ['params', 'requestState'],
    ['params', 'taskId'],
  ],
  // They name the target, and headers repeat them.
  fixed: [
    ['params', 'name'],
    ['params', 'uri'],
  ],
}

export const mcpTexts = {
  where: REQUEST,
  rewritten: (body: Body, bytes: Uint8Array): Body | Denial =>
    body instanceof McpBody ? body.rewritten(bytes) : { bytes, value: parsedOrUndefined(bytes), args: bytes },
  /** Parameters that revision 2026-07-28 mirrors in headers. */
  repeated: ({ wire }: Pick<Call, 'wire'>) => mirroredParameters(wire.headers),
}
