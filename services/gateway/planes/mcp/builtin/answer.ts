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
import { member } from '../../wire/json.ts'
import { isModernRevision, KNOWN_REVISIONS } from '../classify.ts'
import { McpResponse } from '../frames/response.ts'
import { awaitedIdOf, type McpRequest, parsedId } from '../message.ts'

/** How servers of the gateway call themselves to clients. */
const VERSION = '1.0.0'

/** `_meta` member by which a server names itself in each answer of revision 2026-07-28. */
const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo'

const LEGACY_REVISIONS = KNOWN_REVISIONS.filter((revision) => !isModernRevision(revision))

/** One call of a server that the gateway is itself, where calls of others would be forwarded. */
export interface BuiltinPassage {
  readonly server: BuiltinServer
  readonly call: Call<'identity' | 'target' | 'hold'>
  readonly request: McpRequest
  /** A wait has opened an event stream already. */
  readonly sent: boolean
}

/**
 * Answers as an MCP server of both eras that keeps no sessions and has tools alone: a GET and a DELETE are refused, as such servers
 * refuse them, and so is every method of what it does not have.
 */
export async function answerBuiltin(passage: BuiltinPassage): Promise<Reply | Denial> {
  const { request, call, server } = passage
  const caller = { identity: call.facts.identity, snapshot: call.snapshot }
  if (request.kind === 'notification') return { kind: 'frames', head: ACCEPTED, frames: [], attempts: [] }
  if (request.kind !== 'request') return deny('method_not_allowed', `${server.name} has neither streams nor sessions`)
  if (request.method === 'tools/call') return called(passage, caller)
  const result = plainResult(passage, caller)
  return isDenial(result) ? result : reply(passage, result)
}

const ACCEPTED: Head = { status: 202, headers: {} }

function plainResult({ server, call, request }: BuiltinPassage, caller: Caller): object | Denial {
  const { instructions } = server
  const capabilities = { tools: {} }
  switch (request.method) {
    case 'initialize':
      return { protocolVersion: agreed(call.body?.value), capabilities, serverInfo: infoOf(server), instructions }
    case 'server/discover':
      return { supportedVersions: KNOWN_REVISIONS, capabilities, instructions, ...uncached }
    case 'tools/list':
      return { tools: shownTools(server, caller), ...(request.era === 'modern' && uncached) }
    case 'ping':
      return {}
    default:
      return deny('unknown_method', `${server.name} has no ${JSON.stringify(request.method)}: it has tools alone`)
  }
}

/** What one caller is shown depends on what stands in files that may change at any time. */
const uncached = { ttlMs: 0, cacheScope: 'private' } as const

/** The tools of a server as a list shows them to this caller. */
export function shownTools(server: BuiltinServer, caller: Caller): readonly object[] {
  return server.tools(caller).map(({ name, title, description, inputSchema, annotations }) => ({
    name,
    title,
    description,
    inputSchema,
    annotations,
  }))
}

function infoOf({ name, title }: BuiltinServer): object {
  return { name, title, version: VERSION }
}

/** The revision that the client asks for, or else the latest that has a handshake. */
function agreed(message: unknown): string {
  const asked = member(member(message, 'params'), 'protocolVersion')
  const known = LEGACY_REVISIONS.find((revision) => revision === asked)
  return known ?? LEGACY_REVISIONS.at(-1) ?? ''
}

async function called(passage: BuiltinPassage, caller: Caller): Promise<Reply | Denial> {
  const { server, call } = passage
  const tool = server.tools(caller).find(({ name }) => name === call.facts.target.tool)
  if (tool === undefined) return deny('unknown_tool', `${server.name} has no such tool for this caller`)
  const result = await tool.run(call.body?.argsValue ?? {}, { ...caller, signal: call.signal })
  if (isDenial(result)) return result
  const { content, isError, attempts } = result
  return reply(passage, isError ? { content, isError } : { content }, attempts)
}

/** Of the answer to a message without an id. */
const NULL_ID = parsedId(Buffer.from('null'))

function reply({ server, request, sent }: BuiltinPassage, result: object, attempts: Outcome['attempts'] = []): Reply {
  const told =
    request.era === 'modern'
      ? { resultType: 'complete', ...result, _meta: { [META_SERVER_INFO]: infoOf(server) } }
      : result
  const id = awaitedIdOf(request) ?? NULL_ID
  const json = Buffer.concat([
    Buffer.from('{"jsonrpc":"2.0","id":'),
    id.literal(),
    Buffer.from(`,"result":${JSON.stringify(told)}}`),
  ])
  const frame = new McpResponse({ id, method: request.method, era: request.era }).body(json)
  return {
    kind: 'frames',
    head: { status: 200, headers: { 'content-type': 'application/json' } },
    frames: [sent ? frame.inEvent() : frame],
    attempts,
  }
}
