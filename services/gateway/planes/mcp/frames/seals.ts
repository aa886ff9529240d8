import { findSpan, isObject, type JsonObject, member } from '@plat/core'
import { type Call, type Denial, deny, type Message } from '../../../call/index.ts'
import { AbandonedError } from '../../wire/exchange.ts'
import type { Era } from '../classify.ts'
import {
  idOf,
  type McpRequest,
  originOf,
  type Replacement,
  requestMethodOf,
  resultOf,
  slice,
  spliced,
  withValue,
} from '../message.ts'
import { bindingOf, type Origin, type Sealed, type Sealer, type SealKind } from '../seal/seal.ts'
import { withServer } from '../shared/naming.ts'
import type { McpFrame } from './frame.ts'

/** Open server requests per call; with more, the stream is aborted. */
const MAX_WAITING = 64
/** Milliseconds after which a server request no longer counts as open, since another replica may have received its response. */
const WAITING_MS = 300_000
/** Longest id of a server request, in bytes. */
const MAX_ID_BYTES = 1024
/** Longest sealed event id, in bytes: a client sends it back in a header. */
const MAX_EVENT_ID_BYTES = 2048

/** An event id that is valid in a header: no control characters, and no space at either end. */
const SENDABLE = /^[^\p{Cc} ](?:\P{Cc}*[^\p{Cc} ])?$/u

interface Waiting {
  /** The sealed id, as sent to the client. */
  readonly id: Uint8Array
  /** Milliseconds since the epoch. */
  readonly until: number
}

/**
 * Seals values that a client sends back later: ids of server requests, cursors, event ids, states between rounds. A sealed value is
 * valid only for the same session at the same server, on any replica, and contains the call that issued it.
 */
export class ReplySeals {
  readonly #sealer: Sealer
  readonly #call: Call<'identity' | 'target'>
  readonly #request: McpRequest
  #resumable: boolean
  /** Open requests by the id as the server wrote it; null until the first one. */
  #waiting: Map<string, Waiting> | null = null

  constructor(sealer: Sealer, call: Call<'identity' | 'target'>, request: McpRequest) {
    this.#sealer = sealer
    this.#call = call
    this.#request = request
    // A resumed stream can be resumed again.
    this.#resumable = request.lastEvent !== null
  }

  /** The call that issues sealed values; for a resumed stream, the call that opened it. */
  get #origin(): Origin {
    const { id, operation, method, facts } = this.#call
    const own = { call: id, operation, method, tool: facts.target.tool }
    return (this.#request.kind === 'listen' ? originOf(this.#request) : null) ?? own
  }

  /** True when the client has an event id with which it can resume the stream. */
  get resumable(): boolean {
    return this.#resumable
  }

  /**
   * Returns an event with a sealed id, which contains the id of the request whose response is awaited. An id that is not valid in a header
   * is removed, and so are all ids in revision 2026-07-28, which does not resume streams.
   */
  event(frame: McpFrame): McpFrame {
    const id = this.#request.era === 'legacy' ? frame.eventId : null
    if (id === null) return frame
    if (this.#isMerged) return frame.withEventId(null)
    const sealed = this.#sealEvent(id)
    if (sealed !== null) this.#resumable = true
    return frame.withEventId(sealed)
  }

  /** True for a stream that is merged with those of other servers, so that no id of one of them can resume it. */
  get #isMerged(): boolean {
    const { shared, kind, lastEvent } = this.#request
    return shared !== null && kind === 'listen' && lastEvent === null
  }

  #sealEvent(id: string): string | null {
    const awaited = idOf(this.#request)
    const awaits = awaited === null ? '' : textOf(awaited)
    const size = Buffer.byteLength(id) + Buffer.byteLength(this.#origin.tool ?? '') + Buffer.byteLength(awaits)
    if (size > MAX_EVENT_ID_BYTES || !SENDABLE.test(id)) return null
    return this.#seal('mcp-event', id, awaits === '' ? undefined : awaits)
  }

  /** Returns a request of the server to the client with a sealed id. Throws AbandonedError to end the stream. */
  serverRequest(frame: McpFrame, json: Uint8Array, now: number): McpFrame {
    const own = this.#withToken(json)
    const span = findSpan(own, ['id'])
    if (span === null || span[1] - span[0] > MAX_ID_BYTES)
      throw new AbandonedError('the server sent a request with an invalid id')
    const literal = textOf(own.subarray(span[0], span[1]))
    const id = jsonText(this.#seal('mcp-request', literal))
    this.#remember(literal, { id, until: now + WAITING_MS }, now)
    const message = { method: String(member(frame.value, 'method')), args: slice(own, ['params']) }
    return frame.withJson(spliced(own, span, id)).asking([message])
  }

  /** Seals the progress token of a request at the address of all servers, where the client's progress must name its server. */
  #withToken(json: Uint8Array): Uint8Array {
    const path = ['params', '_meta', 'progressToken']
    const token = this.#request.shared === null ? null : slice(json, path)
    if (token === null) return json
    if (token.byteLength > MAX_ID_BYTES)
      throw new AbandonedError('the server sent a request with an invalid progress token')
    return withValue(json, path, jsonText(this.#seal('mcp-progress', textOf(token))))
  }

  /** Replaces the request id in a `notifications/cancelled` of the server with the sealed id. */
  cancelled(frame: McpFrame, json: Uint8Array): McpFrame {
    if (this.#waiting === null || member(frame.value, 'method') !== 'notifications/cancelled') return frame
    const path = ['params', 'requestId']
    const known = this.#waiting.get(textOf(slice(json, path) ?? NOTHING))
    return known === undefined ? frame : frame.withJson(withValue(json, path, known.id))
  }

  /** Returns a result with its cursor or state sealed. */
  result(frame: McpFrame, json: Uint8Array): McpFrame {
    const { era } = this.#request
    const method = requestMethodOf(this.#request)
    if (method.endsWith('/list')) return this.#listed(frame, json)
    return era === 'modern' && ROUNDS.has(method) ? this.#round(frame, json) : frame
  }

  #listed(frame: McpFrame, json: Uint8Array): McpFrame {
    if (typeof member(member(frame.value, 'result'), 'nextCursor') !== 'string') return frame
    const cursor = slice(json, ['result', 'nextCursor'])
    if (cursor === null) return frame
    const sealed = jsonText(this.#seal('mcp-cursor', textOf(cursor)))
    return frame.withJson(privately(withValue(json, ['result', 'nextCursor'], sealed)))
  }

  #round(frame: McpFrame, json: Uint8Array): McpFrame {
    const result = resultOf(frame.value)
    if (result === null) return frame
    const { inputRequests: requests, requestState: state } = result
    if (requests === undefined && state === undefined) return frame
    const sealed = this.#withState(json)
    const names = isObject(requests) ? Object.keys(requests) : []
    return frame.withJson(sealed).asking(names.map((name) => inputRequest(json, member(requests, name), name)))
  }

  /** Seals the state. If the server sent none, adds one, so that the gateway can identify the previous round. */
  #withState(json: Uint8Array): Uint8Array {
    const path = ['result', 'requestState']
    const state = slice(json, path)
    const sealed = jsonText(this.#seal('mcp-state', state === null ? '' : textOf(state)))
    if (state !== null) return withValue(json, path, sealed)
    const [start] = findSpan(json, ['result']) ?? [0]
    const first = Buffer.concat([Buffer.from('"requestState":'), sealed, Buffer.from(',')])
    return spliced(json, [start + 1, start + 1], first)
  }

  #remember(literal: string, waiting: Waiting, now: number): void {
    this.#waiting ??= new Map()
    for (const [id, { until }] of this.#waiting) {
      if (until > now) break
      this.#waiting.delete(id)
    }
    if (this.#waiting.size >= MAX_WAITING) throw new AbandonedError('the server has too many open requests')
    this.#waiting.set(literal, waiting)
  }

  #seal(kind: SealKind, id: string, awaits?: string): string {
    const { facts, server } = this.#call
    const { shared, session, revision } = this.#request
    const content = { id, target: facts.target.key, ...(awaits !== undefined && { awaits }) }
    const placed = shared === null || session === null ? content : { ...content, session: session.id, revision }
    const sealed = kind === 'mcp-cursor' ? content : { ...placed, origin: this.#origin }
    const text = this.#sealer.seal(bindingOf(kind, facts.identity, server), sealed)
    return shared === null ? text : withServer(text, server)
  }
}

const NOTHING = new Uint8Array(0)
const PRIVATE = Buffer.from('"private"')

/** Marks a list as specific to its caller, so that caches do not share it (revision 2026-07-28, `cacheScope`). */
export function privately(json: Uint8Array): Uint8Array {
  return withValue(json, ['result', 'cacheScope'], PRIVATE)
}

/** Returns the record of a request to the client in a result. */
export function inputRequest(json: Uint8Array, request: unknown, name: string): Message {
  return {
    method: String(member(request, 'method')),
    args: slice(json, ['result', 'inputRequests', name, 'params']),
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

function jsonText(text: string): Uint8Array {
  return Buffer.from(JSON.stringify(text))
}

export interface Unsealer {
  /** Opens a value that was sealed for this caller and this server; null when it was not. */
  open(kind: SealKind, text: string): Sealed | null
}

/** Opened sealed values of a message, and the changes to make before it is forwarded. */
type Unsealed = Pick<McpRequest, 'opened' | 'replaced' | 'withheld'>

/** A message without sealed values. */
export const NOTHING_SEALED: Unsealed = { opened: [], replaced: [], withheld: [] }

/** The methods whose results may request another round (revision 2026-07-28). */
const ROUNDS: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/** A member of a message that the gateway sealed. */
interface SealedMember {
  readonly kind: SealKind
  readonly path: readonly string[]
  readonly text: string
}

/** Opens the sealed member of a message, if it has one. Returns a denial if it was not sealed for this caller. */
export function openMessage(message: JsonObject, about: About, opener: Unsealer): Unsealed | Denial {
  const place = placeIn(message, about)
  if (place === null) return NOTHING_SEALED
  const sealed = opener.open(place.kind, place.text)
  if (sealed === null) return deny('not_found', `no such ${place.path.at(-1)}`)
  const opened = [sealed]
  // The server sent no state, so the gateway had added one to identify the rounds of a call. The server must not see it.
  if (sealed.id === '') return { opened, replaced: [], withheld: [place.path] }
  const replacement: Replacement = { path: place.path, with: Buffer.from(sealed.id) }
  return { opened, replaced: [replacement], withheld: [] }
}

/** Properties of a message that determine its sealed member. */
interface About {
  readonly kind: McpRequest['kind']
  readonly era: Era
  readonly method: string
  /** Whether it was sent to the address of all servers. */
  readonly isShared: boolean
}

function placeIn(message: JsonObject, { kind, era, method, isShared }: About): SealedMember | null {
  if (kind === 'answer') return { kind: 'mcp-request', path: ['id'], text: String(message.id) }
  if (isShared && method === 'notifications/progress') return textAt(message, 'mcp-progress', 'progressToken')
  if (kind !== 'request') return null
  if (method.endsWith('/list')) return textAt(message, 'mcp-cursor', 'cursor')
  return era === 'modern' && ROUNDS.has(method) ? textAt(message, 'mcp-state', 'requestState') : null
}

function textAt(message: JsonObject, kind: SealKind, name: string): SealedMember | null {
  const text = member(message.params, name)
  return typeof text === 'string' ? { kind, path: ['params', name], text } : null
}
