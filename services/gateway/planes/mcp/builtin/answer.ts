import { member } from '@plat/core'
import {
  type BuiltinServer,
  type Call,
  type Caller,
  type Denial,
  deny,
  type Head,
  isDenial,
  type Outcome,
  type Reply,
} from '../../../call/index.ts'
import { isModernRevision, KNOWN_REVISIONS } from '../classify.ts'
import { McpResponse } from '../frames/response.ts'
import { awaitedIdOf, type McpRequest, parsedId } from '../message.ts'

/** Version of built-in servers in `serverInfo`. */
const VERSION = '1.0.0'

/** `_meta` member with the server's name and version in each response of revision 2026-07-28. */
const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo'

const LEGACY_REVISIONS = KNOWN_REVISIONS.filter((revision) => !isModernRevision(revision))

export interface BuiltinCall {
  readonly server: BuiltinServer
  readonly call: Call<'identity' | 'target' | 'hold'>
  readonly request: McpRequest
  /** A wait for an approval has already opened an event stream. */
  readonly sent: boolean
}

/**
 * Responds to a call as an MCP server of both eras with tools only and without sessions: GET, DELETE and all methods of other
 * capabilities are refused.
 */
export async function answerBuiltin(context: BuiltinCall): Promise<Reply | Denial> {
  const { request, call, server } = context
  const caller = { identity: call.facts.identity, snapshot: call.snapshot }
  if (request.kind === 'notification') return { kind: 'frames', head: ACCEPTED, frames: [], attempts: [] }
  if (request.kind !== 'request') return deny('method_not_allowed', `${server.name} has neither streams nor sessions`)
  if (request.method === 'tools/call') return called(context, caller)
  const result = plainResult(context, caller)
  return isDenial(result) ? result : reply(context, result)
}

const ACCEPTED: Head = { status: 202, headers: {} }

function plainResult({ server, call, request }: BuiltinCall, caller: Caller): object | Denial {
  const { instructions } = server
  const capabilities = { tools: {} }
  switch (request.method) {
    case 'initialize':
      return { protocolVersion: agreed(call.body?.value), capabilities, serverInfo: infoOf(server), instructions }
    case 'server/discover':
      return { supportedVersions: KNOWN_REVISIONS, capabilities, instructions, ...uncached }
    case 'tools/list':
      return { tools: visibleTools(server, caller), ...(request.era === 'modern' && uncached) }
    case 'ping':
      return {}
    default:
      return deny('unknown_method', `${server.name} has no ${JSON.stringify(request.method)}: it has tools only`)
  }
}

/** The tools depend on the caller and on files that may change at any time. */
const uncached = { ttlMs: 0, cacheScope: 'private' } as const

/** Returns the definitions of a server's tools that this caller may see. */
export function visibleTools(server: BuiltinServer, caller: Caller): readonly object[] {
  return server.tools(caller).map(({ name, title, description, inputSchema, outputSchema, annotations }) => ({
    name,
    title,
    description,
    inputSchema,
    ...(outputSchema !== undefined && { outputSchema }),
    annotations,
  }))
}

function infoOf({ name, title }: BuiltinServer): object {
  return { name, title, version: VERSION }
}

/** Returns the revision that the client requested if it has a handshake, otherwise the latest that has one. */
function agreed(message: unknown): string {
  const requested = member(member(message, 'params'), 'protocolVersion')
  const known = LEGACY_REVISIONS.find((revision) => revision === requested)
  return known ?? LEGACY_REVISIONS.at(-1) ?? ''
}

async function called(context: BuiltinCall, caller: Caller): Promise<Reply | Denial> {
  const { server, call } = context
  const tool = server.tools(caller).find(({ name }) => name === call.facts.target.tool)
  if (tool === undefined) return deny('unknown_tool', `${server.name} has no such tool for this caller`)
  const result = await tool.run(call.body?.argsValue ?? {}, {
    ...caller,
    signal: call.signal,
    argsJson: call.body?.args ?? null,
    retain: (bytes) => call.retain(bytes),
    countHit: (...hit) => call.countHit?.(...hit),
  })
  if (isDenial(result)) return result
  const { content, structuredContent, isError, attempts } = result
  const structured = structuredContent === undefined ? {} : { structuredContent }
  return reply(context, { content, ...structured, ...(isError && { isError }) }, attempts)
}

/** Id of the response to a message without an id. */
const NULL_ID = parsedId(Buffer.from('null'))

function reply({ server, request, sent }: BuiltinCall, result: object, attempts: Outcome['attempts'] = []): Reply {
  const text =
    request.era === 'modern'
      ? { resultType: 'complete', ...result, _meta: { [META_SERVER_INFO]: infoOf(server) } }
      : result
  const id = awaitedIdOf(request) ?? NULL_ID
  const json = Buffer.concat([
    Buffer.from('{"jsonrpc":"2.0","id":'),
    id.literal(),
    Buffer.from(`,"result":${JSON.stringify(text)}}`),
  ])
  const frame = new McpResponse({ id, method: request.method, era: request.era }).body(json)
  return {
    kind: 'frames',
    head: { status: 200, headers: { 'content-type': 'application/json' } },
    frames: [sent ? frame.inEvent() : frame],
    attempts,
  }
}
