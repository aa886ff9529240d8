import { isObject, type JsonObject, member } from '@plat/core'
import {
  ALL_SERVERS,
  type Denial,
  deny,
  type Identity,
  isDenial,
  type Operation,
  type Parsed,
  type RequestContext,
} from '../../../call/index.ts'
import { header, useJsonBytes } from '../../wire/message.ts'
import { claimedVersion, decodeMirrored, encodeMirrored } from '../headers.ts'
import { type SharedSession, withValue } from '../message.ts'
import {
  checkHead,
  type Opened,
  parseMessage,
  type Reader,
  readKnown,
  readPosted,
  readStream,
  SESSION,
} from '../read.ts'
import { bindingOf, type Sealer } from '../seal/seal.ts'
import { type Naming, serverOfSealed, splitUri, type Unprefixed, withoutServer } from './naming.ts'
import type { CallersServers } from './servers.ts'

/** Dependencies of `readShared`. */
export interface SharedReader {
  readonly reader: Reader
  readonly servers: CallersServers
  readonly naming: Naming
  /** Resolves to the server's name of a tool with a shortened name; null: it has none of this name. Never rejects. */
  toolOf(place: ToolPlace): Promise<string | Denial | null>
}

/** Where a tool with a shortened name is looked up. */
export interface ToolPlace {
  readonly arrival: RequestContext
  readonly identity: Identity
  readonly session: SharedSession | null
  readonly server: string
  readonly prefix: string
  readonly shownName: string
  readonly revision: string
  readonly message: JsonObject
}

/** A request whose head is valid. */
interface Arrived {
  readonly from: SharedReader
  readonly arrival: RequestContext
  readonly identity: Identity
}

/**
 * Reads a request to the address of all servers. One whose name, URI or sealed value states a server becomes that server's request, as if it had
 * arrived at its address; the gateway itself responds to all others.
 */
export function readShared(
  from: SharedReader,
  arrival: RequestContext,
  identity: Identity,
): Parsed | Denial | Promise<Parsed | Denial> {
  const method = checkHead(from.reader, arrival)
  if (isDenial(method)) return method
  const arrived: Arrived = { from, arrival, identity }
  if (method === 'POST') return readBody(arrived)
  return method === 'DELETE' ? readEnd(arrived) : readListen(arrived)
}

async function readBody(arrived: Arrived): Promise<Parsed | Denial> {
  return await useJsonBytes<Parsed | Denial>(arrived.arrival, arrived.from.reader, (bytes) => routed(arrived, bytes))
}

/** Returns the client's session, which the headers of a legacy message name. */
function sessionOf({ from, arrival, identity }: Arrived, isModern: boolean): SharedSession | Denial | null {
  const text = isModern ? null : header(arrival.wire.headers, SESSION)
  if (text === null) return null
  return openSession(from.reader.sealer, identity, text) ?? deny('unknown_session', 'no such session')
}

function readEnd(arrived: Arrived): Parsed | Denial {
  const session = sessionOf(arrived, false)
  if (isDenial(session)) return session
  const read = readStream(openedFor(arrived, { server: ALL_SERVERS, prefix: '', shownName: null, session }), 'DELETE')
  return isDenial(read) ? read : { ...read, operation: 'mcp.all' }
}

/** A stream that a client resumes is one of the server that issued the event; any other has the streams of all its servers. */
function readListen(arrived: Arrived): Parsed | Denial {
  const session = sessionOf(arrived, false)
  if (isDenial(session)) return session
  const lastEvent = header(arrived.arrival.wire.headers, 'last-event-id')
  const server = lastEvent === null ? null : serverOfSealed(lastEvent)
  if (lastEvent === null && session !== null) {
    const all = { server: ALL_SERVERS, prefix: '', shownName: null, session }
    const read = readStream(openedFor(arrived, all), 'GET')
    return isDenial(read) ? read : { ...read, operation: 'mcp.streams' }
  }
  if (server === null) return deny('method_not_allowed', 'a stream without a request needs a session')
  const prefix = arrived.from.naming.prefixOf(server)
  return readStream(openedFor(arrived, { server, prefix, shownName: null, session }), 'GET')
}

interface Routed {
  readonly server: string
  readonly prefix: string
  readonly shownName: string | null
  readonly session: SharedSession | null
}

function openedFor({ from, arrival, identity }: Arrived, { server, ...shared }: Routed): Opened {
  return { reader: from.reader, arrival, identity, server, shared, session: null }
}

function routed(arrived: Arrived, bytes: Uint8Array): Parsed | Denial | Promise<Parsed | Denial> {
  const message = parseMessage(bytes)
  if (isDenial(message)) return message
  const { headers } = arrived.arrival.wire
  const version = claimedVersion(headers, message.method, member(message.params, '_meta'))
  const session = sessionOf(arrived, isDenial(version) || version.era === 'modern')
  const place = placeOf(message, arrived.from.naming)
  const own: Routed = { server: ALL_SERVERS, prefix: '', shownName: place?.text ?? null, session: null }
  if (isDenial(session)) return refused(readAll(arrived, { ...own, bytes, message }), session)
  const server = place === null ? null : serverAt(arrived, place)
  if (place === null || server === null) return readAll(arrived, { ...own, session, bytes, message })
  const prefix = arrived.from.naming.prefixOf(server)
  const at: Routed = { server, prefix, shownName: place.text, session }
  const { name } = place
  if (name === null) return readPosted(openedFor(arrived, at), bytes, message)
  const isKnown = arrived.from.servers.withPrefix(arrived.arrival.snapshot, arrived.identity, place.prefix) !== null
  if (!isKnown || message.method !== 'tools/call' || !arrived.from.naming.isShortened(place.text))
    return renamed(arrived, { ...at, bytes, message, place, name })
  const { arrival, identity } = arrived
  const revision = isDenial(version) ? '' : version.revision
  const looked = arrived.from.toolOf({
    arrival,
    identity,
    session,
    server,
    prefix,
    shownName: place.text,
    revision,
    message,
  })
  return looked.then((tool) =>
    isDenial(tool)
      ? refused(readAll(arrived, { ...own, bytes, message }), tool)
      : renamed(arrived, { ...at, bytes, message, place, name: tool ?? name }),
  )
}

/** The request is read so that its refusal has its id. */
function refused(read: Parsed | Denial, denial: Denial): Denial {
  return isDenial(read) ? read : denial
}

interface Sent extends Routed {
  readonly bytes: Uint8Array
  readonly message: JsonObject
}

/** Reads a message that is not for one server, such as a list. If its method needs a server, the message keeps the operation of one, and a stage refuses it. */
function readAll(arrived: Arrived, { bytes, message, ...at }: Sent): Parsed | Denial {
  const read = readKnown(openedFor(arrived, at), bytes, message)
  if (isDenial(read) || OF_ONE_SERVER.has(read.operation)) return read
  return { ...read, operation: read.operation === 'mcp.listen' ? 'mcp.streams' : 'mcp.all' }
}

const OF_ONE_SERVER: ReadonlySet<Operation> = new Set<Operation>(['mcp.call', 'mcp.get', 'mcp.task'])

/** Reads a message as its server's, with the server's name of what it requests. */
function renamed(
  arrived: Arrived,
  { bytes, place, name, ...at }: Sent & { readonly place: Place; readonly name: string },
): Parsed | Denial | Promise<Parsed | Denial> {
  const { wire } = arrived.arrival
  const json = Buffer.from(JSON.stringify(name))
  const changed = withValue(bytes, place.path, json)
  const message = parseMessage(changed)
  if (isDenial(message)) return message
  const mirrored = header(wire.headers, 'mcp-name')
  // A header that repeats the name of the body repeats the server's name then; any other is refused as different.
  if (mirrored !== null && decodeMirrored(mirrored) === place.text)
    wire.headers = { ...wire.headers, 'mcp-name': encodeMirrored(name) }
  return readPosted(openedFor(arrived, at), changed, message)
}

/** Where a message states its server. */
interface Place extends Omit<Unprefixed, 'name'> {
  readonly path: readonly string[]
  readonly text: string
  /** The name that the server knows; null: the message is not changed. */
  readonly name: string | null
  /** The prefix is the server's name itself. */
  readonly sealed: boolean
}

function placeOf(message: JsonObject, naming: Naming): Place | null {
  const { method, params } = message
  if (method === undefined) return sealedPlace(String(message.id))
  if (method === 'notifications/progress') return sealedPlace(String(member(params, 'progressToken')))
  if (typeof method === 'string' && WITH_TASK.has(method))
    return unprefixed(['params', 'taskId'], member(params, 'taskId'), splitTaskId)
  const named = (path: readonly string[], text: unknown) => unprefixed(path, text, (name) => naming.split(name))
  const located = (path: readonly string[], text: unknown) => unprefixed(path, text, splitUri)
  if (method === 'tools/call' || method === 'prompts/get') return named(['params', 'name'], member(params, 'name'))
  if (method === 'completion/complete') {
    const ref = member(params, 'ref')
    const isPrompt = member(ref, 'type') === 'ref/prompt'
    return isPrompt
      ? named(['params', 'ref', 'name'], member(ref, 'name'))
      : located(['params', 'ref', 'uri'], member(ref, 'uri'))
  }
  return typeof method === 'string' && WITH_URI.has(method) ? located(['params', 'uri'], member(params, 'uri')) : null
}

const WITH_URI: ReadonlySet<string> = new Set(['resources/read', 'resources/subscribe', 'resources/unsubscribe'])

const WITH_TASK: ReadonlySet<string> = new Set(['tasks/get', 'tasks/result', 'tasks/update', 'tasks/cancel'])

function splitTaskId(text: string): Unprefixed | null {
  const prefix = serverOfSealed(text)
  const name = prefix === null ? null : withoutServer(text, prefix)
  return prefix === null || name === null ? null : { prefix, name }
}

function sealedPlace(text: string): Place | null {
  const prefix = serverOfSealed(text)
  return prefix === null ? null : { prefix, path: [], text, name: null, sealed: true }
}

function unprefixed(path: readonly string[], text: unknown, split: (text: string) => Unprefixed | null): Place | null {
  const found = typeof text === 'string' ? split(text) : null
  return found === null || typeof text !== 'string' ? null : { ...found, path, text, sealed: false }
}

/** Names of servers; see `serverName`. */
const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/

/** Returns the server that a message states, also one that the caller may not use: a stage refuses it then, as at the server's address. */
function serverAt({ from, arrival, identity }: Arrived, { prefix, sealed }: Place): string | null {
  const known = sealed ? null : from.servers.withPrefix(arrival.snapshot, identity, prefix)
  return known ?? (SERVER_NAME.test(prefix) ? from.reader.nameOf(arrival, identity, prefix) : null)
}

/** Returns the text of a session id, which only this caller can use. */
export function sealSession(sealer: Sealer, identity: Identity, session: SharedSession): string {
  const id = JSON.stringify(session)
  return sealer.seal(bindingOf('mcp-session', identity, ALL_SERVERS), { id, target: ALL_SERVERS })
}

function openSession(sealer: Sealer, identity: Identity, text: string): SharedSession | null {
  const sealed = sealer.open(bindingOf('mcp-session', identity, ALL_SERVERS), text)
  const value: unknown = sealed === null ? null : JSON.parse(sealed.id)
  if (!isObject(value) || !isObject(value.client)) return null
  const { id, revision, client } = value
  return typeof id === 'string' && typeof revision === 'string' ? { id, revision, client } : null
}
