import { type JsonObject, member } from '@plat/core'
import { type Denial, deny, type Head, type Reply } from '../../../call/index.ts'
import { isModernRevision, KNOWN_REVISIONS } from '../classify.ts'
import { McpFrame } from '../frames/frame.ts'
import { idOf, type McpRequest, type SharedSession } from '../message.ts'
import { TASKS_EXTENSION } from '../tasks/status.ts'
import type { NamedServer } from './servers.ts'

const VERSION = '1.0.0'
/** Most characters of a client's capabilities and information, since they are part of its session id, a header. */
const MAX_CLIENT_CHARACTERS = 2048
/** Most servers that the instructions name. */
const MAX_NAMED_SERVERS = 64

const LEGACY_REVISIONS = KNOWN_REVISIONS.filter((revision) => !isModernRevision(revision))

/** `_meta` member with the server's name and version in each response of revision 2026-07-28. */
const META_SERVER_INFO = 'io.modelcontextprotocol/serverInfo'
const SERVER_INFO = { name: 'plat', title: 'plat gateway', version: VERSION }

/** The capabilities of all servers together: a server without one of them has nothing in the lists. */
const BOTH_ERAS = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  logging: {},
  completions: {},
}
const MODERN_CAPABILITIES = { ...BOTH_ERAS, extensions: { [TASKS_EXTENSION]: {} } }
/** Each tool states whether it supports tasks. */
const CAPABILITIES = { ...BOTH_ERAS, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }

/** Response to a notification. */
export const ACCEPTED: Reply = emptyReply(202)
/** Response to the end of a session: clients of the SDK for Python report any status but 200 and 204 as a failure. */
export const ENDED: Reply = emptyReply(204)

function emptyReply(status: number): Reply {
  return { kind: 'frames', head: { status, headers: {} }, frames: [], attempts: [] }
}

/** Returns the response to a request with this JSON of its result. */
export function resultReply(
  request: McpRequest,
  result: string,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const id = idOf(request) ?? Buffer.from('null')
  const json = Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":'), id, Buffer.from(`,"result":${result}}`)])
  const head: Head = { status: 200, headers: { 'content-type': 'application/json', ...headers } }
  return { kind: 'frames', head, frames: [McpFrame.written('final', json)], attempts: [] }
}

/** Members of results beside their content. */
export interface ResultMembers {
  nextCursor?: string
  readonly resultType?: 'complete'
  readonly ttlMs?: number
  readonly cacheScope?: 'private'
  _meta?: Readonly<Record<string, unknown>>
}

export function eraMembers({ era }: McpRequest, caching: boolean): ResultMembers {
  if (era === 'legacy') return {}
  // Depends on the token and on servers that may change at any time.
  const cache = caching ? ({ ttlMs: 0, cacheScope: 'private' } as const) : {}
  return { resultType: 'complete', ...cache, _meta: { [META_SERVER_INFO]: SERVER_INFO } }
}

/** Returns the session that an `initialize` begins; a denial if the client says too much about itself. */
export function beginSession(message: unknown, id: string): SharedSession | Denial {
  const params = member(message, 'params')
  const client: JsonObject = {
    capabilities: member(params, 'capabilities') ?? {},
    clientInfo: member(params, 'clientInfo') ?? {},
  }
  if (JSON.stringify(client).length > MAX_CLIENT_CHARACTERS)
    return deny('invalid_request', `capabilities and clientInfo exceed ${MAX_CLIENT_CHARACTERS} characters`)
  const requested = member(params, 'protocolVersion')
  const known = LEGACY_REVISIONS.find((revision) => revision === requested)
  return { id, revision: known ?? LEGACY_REVISIONS.at(-1) ?? '', client }
}

/** Returns the result of `initialize`. */
export function initialized({ revision }: SharedSession, instructions: string): object {
  return { protocolVersion: revision, capabilities: CAPABILITIES, serverInfo: SERVER_INFO, instructions }
}

/** Returns the result of `server/discover`. Without revision 2026-07-28 clients of both eras choose one with sessions. */
export function discovered(request: McpRequest, instructions: string, isModern: boolean): object {
  const supportedVersions = isModern ? KNOWN_REVISIONS : LEGACY_REVISIONS
  return { supportedVersions, capabilities: MODERN_CAPABILITIES, instructions, ...eraMembers(request, true) }
}

/** Returns the instructions for models: how names are formed. Those of the servers are not repeated, since a server writes them for itself alone. */
export function instructionsFor(servers: readonly NamedServer[], separator: string): string {
  const prefixes = servers.flatMap(({ prefix }) => (prefix === null ? [] : [prefix]))
  const named = prefixes.slice(0, MAX_NAMED_SERVERS).join(', ')
  const more = prefixes.length > MAX_NAMED_SERVERS ? `, and ${prefixes.length - MAX_NAMED_SERVERS} more` : ''
  const names = `Names of tools and prompts are <server>${separator}<name>, URIs of resources mcp://<server>/<uri>.`
  return prefixes.length === 0 ? `${names} This token may use no server.` : `${names} Servers: ${named}${more}.`
}
