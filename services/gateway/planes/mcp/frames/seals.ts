import { findSpan } from '@plat/core'
import type { Call, Message } from '../../../call/index.ts'
import { AbandonedError } from '../../wire/exchange.ts'
import { isObject, member } from '../../wire/json.ts'
import { idOf, type McpRequest, originOf, requestMethodOf, resultOf, slice, spliced, withValue } from '../message.ts'
import { ROUNDS } from '../seal/open.ts'
import { bindingOf, type Origin, type Sealer, type SealKind } from '../seal/seal.ts'
import type { McpFrame } from './frame.ts'

/** Server requests of one call that may wait for an answer at one time; a server that goes on asking is cut off. */
const MAX_WAITING = 64
/** After this long a server request no longer counts as waiting, in milliseconds: its answer may have taken another replica. */
const WAITING_MS = 300_000
/** Longest id of a server request, in bytes. */
const MAX_ID_BYTES = 1024
/** Longest event id that a client can send back in a header, in bytes, with what is sealed beside it. */
const MAX_EVENT_ID_BYTES = 2048

/** An event id that a header can carry back, in UTF-8: no controls, and no space at either end. */
const SENDABLE = /^[^\p{Cc} ](?:\P{Cc}*[^\p{Cc} ])?$/u

interface Waiting {
  /** The id under seal, as the client knows it. */
  readonly id: Uint8Array
  /** Milliseconds since the epoch. */
  readonly until: number
}

/**
 * Puts under seal what a client sends back later: ids of server requests, cursors, event ids, states between rounds. Each then
 * works for the same session at the same server, on any replica, and tells which call it came out of.
 */
export class ReplySeals {
  readonly #sealer: Sealer
  readonly #call: Call<'identity' | 'target'>
  readonly #request: McpRequest
  #resumable: boolean
  /** By the id as the server wrote it; most servers ask nothing. */
  #waiting: Map<string, Waiting> | null = null

  constructor(sealer: Sealer, call: Call<'identity' | 'target'>, request: McpRequest) {
    this.#sealer = sealer
    this.#call = call
    this.#request = request
    // Whoever resumed a stream can do so again.
    this.#resumable = request.lastEvent !== null
  }

  /** A stream that is taken up again still belongs to the call that opened it. */
  get #origin(): Origin {
    const { id, operation, method, facts } = this.#call
    const own = { call: id, operation, method, tool: facts.target.tool }
    return (this.#request.kind === 'listen' ? originOf(this.#request) : null) ?? own
  }

  /** True when the client has an event id by which it can fetch the rest of the stream. */
  get resumable(): boolean {
    return this.#resumable
  }

  /**
   * An event under a sealed id, which holds the id of the request whose response is awaited. An id that no header can carry is
   * dropped. Revision 2026-07-28 does not resume streams, so its ids mean nothing.
   */
  event(frame: McpFrame): McpFrame {
    const id = this.#request.era === 'legacy' ? frame.eventId : null
    if (id === null) return frame
    const sealed = this.#sealEvent(id)
    if (sealed !== null) this.#resumable = true
    return frame.withEventId(sealed)
  }

  #sealEvent(id: string): string | null {
    const awaited = idOf(this.#request)
    const awaits = awaited === null ? '' : textOf(awaited)
    const size = Buffer.byteLength(id) + Buffer.byteLength(this.#origin.tool ?? '') + Buffer.byteLength(awaits)
    if (size > MAX_EVENT_ID_BYTES || !SENDABLE.test(id)) return null
    return this.#seal('mcp-event', id, awaits === '' ? undefined : awaits)
  }

  /** A request of the server for the client, under a sealed id. Throws what ends the stream. */
  asked(frame: McpFrame, json: Uint8Array, now: number): McpFrame {
    const span = findSpan(json, ['id'])
    if (span === null || span[1] - span[0] > MAX_ID_BYTES) throw new AbandonedError('the server asks under an odd id')
    const literal = textOf(json.subarray(span[0], span[1]))
    const id = jsonText(this.#seal('mcp-request', literal))
    this.#remember(literal, { id, until: now + WAITING_MS }, now)
    const message = { method: String(member(frame.value, 'method')), args: slice(json, ['params']) }
    return frame.withJson(spliced(json, span, id)).asking([message])
  }

  /** `notifications/cancelled` of the server names a request of its own: by the id that the client knows. */
  cancelled(frame: McpFrame, json: Uint8Array): McpFrame {
    if (this.#waiting === null || member(frame.value, 'method') !== 'notifications/cancelled') return frame
    const path = ['params', 'requestId']
    const known = this.#waiting.get(textOf(slice(json, path) ?? NOTHING))
    return known === undefined ? frame : frame.withJson(withValue(json, path, known.id))
  }

  /** A result, with its cursor or its state under seal. */
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
    const told = this.#withState(json)
    const names = isObject(requests) ? Object.keys(requests) : []
    return frame.withJson(told).asking(names.map((name) => inputRequest(json, member(requests, name), name)))
  }

  /** The state under seal; where the server has none, one that tells the gateway which round came before. */
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
    if (this.#waiting.size >= MAX_WAITING) throw new AbandonedError('the server asks too much at one time')
    this.#waiting.set(literal, waiting)
  }

  #seal(kind: SealKind, id: string, awaits?: string): string {
    const { facts, server } = this.#call
    const content = { id, target: facts.target.key, ...(awaits !== undefined && { awaits }) }
    const sealed = kind === 'mcp-cursor' ? content : { ...content, origin: this.#origin }
    return this.#sealer.seal(bindingOf(kind, facts.identity, server), sealed)
  }
}

const NOTHING = new Uint8Array(0)
const PRIVATE = Buffer.from('"private"')

/** A list that was made for one caller: no cache may show it to another (revision 2026-07-28, `cacheScope`). */
export function privately(json: Uint8Array): Uint8Array {
  return withValue(json, ['result', 'cacheScope'], PRIVATE)
}

function inputRequest(json: Uint8Array, request: unknown, name: string): Message {
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
