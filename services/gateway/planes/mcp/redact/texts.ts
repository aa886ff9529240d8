import type { Body, Call, Denial, RedactionScope } from '../../../call/index.ts'
import { parsedOrUndefined } from '../../wire/json.ts'
import { mirroredParameters } from '../headers.ts'
import { McpBody } from '../message.ts'

/** What of a request may be looked at and changed: what it asks with, not what the protocol says. */
const REQUEST: RedactionScope = {
  within: [['params'], ['result'], ['error']],
  except: [
    ['params', '_meta', 'progressToken'],
    ['params', 'requestState'],
  ],
  // They name what is called, and headers repeat them.
  fixed: [
    ['params', 'name'],
    ['params', 'uri'],
  ],
}

/** Where the texts of this plane's requests stand. */
export const mcpTexts = {
  where: REQUEST,
  rewritten: (body: Body, bytes: Uint8Array): Body | Denial =>
    body instanceof McpBody ? body.rewritten(bytes) : { bytes, value: parsedOrUndefined(bytes), args: bytes },
  /** Parameters that revision 2026-07-28 mirrors in headers. */
  repeated: ({ wire }: Pick<Call, 'wire'>) => mirroredParameters(wire.headers),
}
