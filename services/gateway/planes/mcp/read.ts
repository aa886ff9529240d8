import type { IncomingHttpHeaders } from 'node:http'
import { type Arrival, type Denial, deny, type Identity, isDenial, type Parsed } from '../../call/index.ts'
import { type BodyLimits, useJsonBytes } from '../wire/body.ts'
import { header } from '../wire/headers.ts'
import type { JsonObject } from '../wire/json.ts'
import { KNOWN_REVISIONS } from './classify.ts'
import { claimedVersion, unsupported } from './headers.ts'
import { type McpRequest, originOf } from './message.ts'
import { classify, type Posted, parseMessage } from './parse.ts'
import { NOTHING_SEALED } from './seal/open.ts'
import { bindingOf, type Sealed, type Sealer, type SealKind } from './seal/seal.ts'
import { traced } from './trace.ts'

/** Everything below this path is a server's name. */
const PREFIX = '/mcp/'
/** docs/spec/crds.md: how an MCPServer may be named; docs/spec/gateway.md, rule 7: the same for static upstreams. */
const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

/** What reading needs beside the request. */
export interface Reader extends BodyLimits {
  readonly sealer: Sealer
  /** Values of `Origin` that a browser may come from. */
  readonly origins: ReadonlySet<string>
  /** The revisions that the server, as this caller would reach it, may be spoken to with. */
  spoken(arrival: Arrival, identity: Identity, server: string): readonly string[]
  /** Keeps what was read until the answer, refusals included: those answer with the request's id. */
  remember(arrival: Arrival, request: McpRequest): void
}

/** A request whose head has passed. */
interface Opened {
  readonly reader: Reader
  readonly arrival: Arrival
  readonly identity: Identity
  readonly server: string
}

/** The server's name in a path; null when it cannot be one. */
export function serverName(path: string): string | null {
  const name = path.startsWith(PREFIX) ? path.slice(PREFIX.length) : ''
  return SERVER_NAME.test(name) ? name : null
}

/** The gate at the HTTP level, then the body, then what it asks for (Streamable HTTP of revisions 2025-03-26 to 2026-07-28). */
export function read(reader: Reader, arrival: Arrival, identity: Identity): Parsed | Denial | Promise<Parsed | Denial> {
  const { method, path, headers } = arrival.wire
  const server = serverName(path)
  if (server === null) return deny('unknown_server', 'the path is /mcp/<name> with the name of an MCP server')
  const origin = header(headers, 'origin')
  if (origin !== null && !reader.origins.has(origin)) return deny('forbidden', 'this origin may not call the gateway')
  if (method !== 'POST' && method !== 'GET' && method !== 'DELETE')
    return deny('method_not_allowed', `${method} is not a method of MCP`)
  const opened: Opened = { reader, arrival, identity, server }
  return method === 'POST' ? readMessage(opened) : readStream(opened, method)
}

/** Opens what this caller was given under seal of this server. */
function unseal({ reader, identity, server }: Opened, kind: SealKind, text: string): Sealed | null {
  return reader.sealer.open(bindingOf(kind, identity, server), text)
}

/** What a client names in a header and has under seal; a foreign one looks as if it never existed. */
function openHeader(opened: Opened, kind: SealKind, name: string): Sealed | Denial | null {
  const text = header(opened.arrival.wire.headers, name)
  if (text === null) return null
  return unseal(opened, kind, text) ?? deny('unknown_session', name === SESSION ? 'no such session' : 'no such event')
}

const SESSION = 'mcp-session-id'

/** GET opens the standalone stream, DELETE ends the session; revision 2026-07-28 has neither. */
function readStream(opened: Opened, method: 'GET' | 'DELETE'): Parsed | Denial {
  const { reader, arrival, server } = opened
  const version = claimedVersion(arrival.wire.headers, method, undefined)
  if (isDenial(version)) return version
  if (version.era === 'modern') return deny('method_not_allowed', `revision ${version.revision} has no ${method}`)
  if (!KNOWN_REVISIONS.includes(version.revision)) return unsupported(version, KNOWN_REVISIONS)
  const session = openHeader(opened, 'mcp-session', SESSION)
  if (isDenial(session)) return session
  const listens = method === 'GET'
  const lastEvent = listens ? openHeader(opened, 'mcp-event', 'last-event-id') : null
  if (isDenial(lastEvent)) return lastEvent
  const unread = { ...NOTHING_SEALED, name: null, id: undefined, bytes: null }
  const request: McpRequest = { ...unread, ...version, kind: listens ? 'listen' : 'end', method, session, lastEvent }
  reader.remember(arrival, request)
  const operation = listens ? 'mcp.listen' : 'mcp.control'
  return { operation, method, server, name: null, body: null, parent: originOf(request)?.call ?? null }
}

function readMessage(opened: Opened): Denial | Promise<Parsed | Denial> {
  return useJsonBytes(opened.arrival, opened.reader, (bytes) => parsedOf(opened, bytes))
}

function parsedOf(opened: Opened, bytes: Uint8Array): Parsed | Denial {
  const message = parseMessage(bytes)
  if (isDenial(message)) return message
  const { request, verdict } = classify(new Post(opened, bytes, message))
  const { trace } = opened.arrival.wire
  opened.reader.remember(opened.arrival, trace === undefined ? request : traced(request, message, trace))
  return verdict
}

/** A message with the head that it came under. */
class Post implements Posted {
  readonly bytes: Uint8Array
  readonly message: JsonObject
  readonly #opened: Opened

  constructor(opened: Opened, bytes: Uint8Array, message: JsonObject) {
    this.bytes = bytes
    this.message = message
    this.#opened = opened
  }

  get server(): string {
    return this.#opened.server
  }

  get headers(): IncomingHttpHeaders {
    return this.#opened.arrival.wire.headers
  }

  session(): Sealed | Denial | null {
    return openHeader(this.#opened, 'mcp-session', SESSION)
  }

  open(kind: SealKind, text: string): Sealed | null {
    return unseal(this.#opened, kind, text)
  }

  spoken(): readonly string[] {
    const { reader, arrival, identity, server } = this.#opened
    return reader.spoken(arrival, identity, server)
  }
}
