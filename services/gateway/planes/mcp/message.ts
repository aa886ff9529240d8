import { findSpan, hasPlainNumbers, isObject, type JsonObject, member, parseLossless, type Span } from '@plat/core'
import type { OwnedTask } from '../../call/bindings/bindings.ts'
import type { Body } from '../../call/index.ts'
import { parsedOrUndefined } from '../wire/message.ts'
import type { Era } from './classify.ts'
import type { Origin, Sealed } from './seal/seal.ts'

/** The reserved members of `params._meta` of revision 2026-07-28. */
export const META_VERSION = 'io.modelcontextprotocol/protocolVersion'
export const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

/** A value to replace in the body before it is forwarded. */
export interface Replacement {
  readonly path: readonly string[]
  /** JSON. */
  readonly with: Uint8Array
}

/** A parsed request, with the fields that only this plane uses. Stored until the response. */
export interface McpRequest {
  /** The JSON-RPC kind of a POST; GET is `listen`, DELETE is `end`. */
  readonly kind: 'request' | 'notification' | 'answer' | 'listen' | 'end'
  readonly era: Era
  readonly revision: string
  readonly method: string
  /** The name in `params`: of a tool, a prompt or a resource. */
  readonly name: string | null
  /** The parsed id of the message; undefined if it has none. */
  readonly id: unknown
  /** The message as received; null for GET and DELETE. */
  readonly bytes: Uint8Array | null
  readonly session: Sealed | null
  /** The event after which a stream is resumed. */
  readonly lastEvent: Sealed | null
  /** Other sealed values in the request, opened. They must be for the server that is called. */
  readonly opened: readonly Sealed[]
  /** The upstream's values of sealed members. */
  readonly replaced: readonly Replacement[]
  /** Paths of members to remove from the body before it is forwarded. */
  readonly withheld: readonly (readonly string[])[]
  /** The caller's task that the request names, as found when it was read. */
  readonly task?: OwnedTask | undefined
  /** Set at the address of all servers; null: the address of one. */
  readonly shared: SharedRequest | null
}

/** Additional parts of a request at the address of all servers. */
export interface SharedRequest {
  /** The client's session at this address; null: none. */
  readonly session: SharedSession | null
  /** Prefix of the server's names and URIs. */
  readonly prefix: string
  /** The name as the client wrote it. */
  readonly shownName: string | null
}

/** The session of a client at the address of all servers, with the parameters of the sessions that the gateway opens at servers for it. */
export interface SharedSession {
  readonly id: string
  readonly revision: string
  /** The client's capabilities and `clientInfo`, as in its `initialize`. */
  readonly client: JsonObject
}

/**
 * Returns the JSON-RPC id that the response must have, as the client wrote it: that of the request, or of the request whose stream is
 * resumed. Returns null when there is no response.
 */
export function idOf({ kind, bytes, lastEvent }: McpRequest): Uint8Array | null {
  if (kind === 'listen') return lastEvent?.awaits === undefined ? null : Buffer.from(lastEvent.awaits)
  return kind === 'request' && bytes !== null ? slice(bytes, ['id']) : null
}

/** The id of a request whose response is awaited. */
export interface AwaitedId {
  readonly value: unknown
  /** Returns the JSON of the id as the client wrote it. Only needed for numbers beyond double precision, so located on demand. */
  literal(): Uint8Array
}

/** Returns `idOf` with its parsed value. */
export function awaitedIdOf(request: McpRequest): AwaitedId | null {
  const { kind, lastEvent } = request
  if (kind === 'listen') return lastEvent?.awaits === undefined ? null : parsedId(Buffer.from(lastEvent.awaits))
  return kind === 'request' ? new MessageId(request) : null
}

class MessageId implements AwaitedId {
  readonly value: unknown
  readonly #request: McpRequest

  constructor(request: McpRequest) {
    this.value = request.id
    this.#request = request
  }

  literal(): Uint8Array {
    return idOf(this.#request) ?? NO_BYTES
  }
}

export function parsedId(json: Buffer): AwaitedId {
  return { value: JSON.parse(json.toString('utf8')), literal: () => json }
}

const NO_BYTES = new Uint8Array(0)

/** Returns the method of the request to which the response belongs; the message's own method when there is no response. */
export function requestMethodOf({ kind, method, lastEvent }: McpRequest): string {
  return kind === 'listen' ? (lastEvent?.origin?.method ?? method) : method
}

/** Returns `params._meta.progressToken` as the client wrote it. */
export function progressTokenOf({ bytes }: McpRequest): Uint8Array | null {
  return bytes === null ? null : slice(bytes, ['params', '_meta', 'progressToken'])
}

/** Returns the call that a request continues: a response to a server request, a further round, or a resumed stream. */
export function originOf({ opened, lastEvent }: McpRequest): Origin | null {
  return lastEvent?.origin ?? opened.find((one) => one.origin !== undefined)?.origin ?? null
}

/** A message that passed the strict JSON scanner. */
export class McpBody implements Body {
  readonly bytes: Uint8Array
  readonly value: unknown
  readonly #argumentsOnly: boolean
  #args: Uint8Array | null | undefined

  /** `argumentsOnly`: `args` are the bytes of `params.arguments` instead of the whole message. */
  constructor(bytes: Uint8Array, value: unknown, argumentsOnly: boolean) {
    this.bytes = bytes
    this.value = value
    this.#argumentsOnly = argumentsOnly
  }

  /** Returns the message with other bytes, which must have passed the strict JSON scanner as well. */
  rewritten(bytes: Uint8Array): McpBody {
    return new McpBody(bytes, parsedOrUndefined(bytes), this.#argumentsOnly)
  }

  /** Located once and cached, since policy, record and redaction read it. */
  get args(): Uint8Array | null {
    if (this.#args === undefined) {
      this.#args = this.#argumentsOnly ? slice(this.bytes, ['params', 'arguments']) : this.bytes
    }
    return this.#args
  }

  /**
   * `params.inputResponses`, and the members of `params._meta` that the protocol does not define: approvals are bound to them, and
   * guards read them. The bytes are parsed again, for exact numbers, only if there are such members.
   */
  get beside(): unknown {
    const params = member(this.value, 'params')
    const inputs = member(params, 'inputResponses')
    if (inputs === undefined && freeMeta(member(params, '_meta')) === undefined) return undefined
    const bytes = slice(this.bytes, ['params'])
    const exact = bytes === null ? undefined : hasPlainNumbers(bytes) ? params : parseLossless(bytes)
    return { inputResponses: member(exact, 'inputResponses'), _meta: freeMeta(member(exact, '_meta')) }
  }

  get argsValue(): unknown {
    return this.#argumentsOnly ? member(member(this.value, 'params'), 'arguments') : this.value
  }

  /** `params.inputResponses`. Before revision 2026-07-28 each response is a message: an object with its id and its result or error. */
  get inputs(): Uint8Array | null {
    if (member(this.value, 'method') !== undefined) {
      const isThere = member(member(this.value, 'params'), 'inputResponses') !== undefined
      return isThere ? slice(this.bytes, ['params', 'inputResponses']) : null
    }
    const answer = slice(this.bytes, ['result']) ?? slice(this.bytes, ['error'])
    if (answer === null) return null
    const key = JSON.stringify(String(member(this.value, 'id')))
    return Buffer.concat([Buffer.from(`{${key}:`), answer, Buffer.from('}')])
  }

  get meta(): Uint8Array | null {
    const isThere = member(member(this.value, 'params'), '_meta') !== undefined
    return isThere ? slice(this.bytes, ['params', '_meta']) : null
  }
}

/** Members of `params._meta` that the protocol defines for the transport of one message. They do not change what is requested. */
const SENDING: ReadonlySet<string> = new Set([
  'progressToken',
  'traceparent',
  'tracestate',
  'baggage',
  META_VERSION,
  META_CAPABILITIES,
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/logLevel',
  'io.modelcontextprotocol/related-task',
])

const NO_NAMES: readonly string[] = []

/** Returns the names of members not in `known`. Allocates a list only if there are any. */
export function namesBeyond(known: ReadonlySet<string>, object: JsonObject): readonly string[] {
  let names: string[] | null = null
  for (const name in object) {
    if (known.has(name)) continue
    names ??= []
    names.push(name)
  }
  return names ?? NO_NAMES
}

/** Returns the result of a message, or null when it is not an object. */
export function resultOf(message: unknown): JsonObject | null {
  if (!isObject(message)) return null
  const { result } = message
  return isObject(result) ? result : null
}

const SENDING_NAMES = [...SENDING]

/** Returns the names of members of `_meta` that the protocol does not define. */
export function freeMetaNames(meta: unknown): readonly string[] {
  return isObject(meta) ? namesBeyond(SENDING, meta) : NO_NAMES
}

/** Returns `_meta` without the members that the protocol defines, or undefined when none are left. */
function freeMeta(meta: unknown): unknown {
  if (!isObject(meta)) return meta
  if (!Object.keys(meta).some((name) => !SENDING.has(name))) return undefined
  const own = SENDING_NAMES.filter((name) => Object.hasOwn(meta, name))
  if (own.length === 0) return meta
  const free = { ...meta }
  for (const name of own) Reflect.deleteProperty(free, name)
  return free
}

/** Returns the bytes of a member's value as received, or null when it is absent. */
export function slice(bytes: Uint8Array, path: readonly string[]): Uint8Array | null {
  const span = findSpan(bytes, path)
  return span === null ? null : bytes.subarray(span[0], span[1])
}

export function spliced(bytes: Uint8Array, [start, end]: Span, replacement: Uint8Array): Uint8Array {
  return Buffer.concat([bytes.subarray(0, start), replacement, bytes.subarray(end)])
}

/** Returns the bytes with the value at `path` replaced; unchanged when there is none. */
export function withValue(bytes: Uint8Array, path: readonly string[], value: Uint8Array): Uint8Array {
  const span = findSpan(bytes, path)
  return span === null ? bytes : spliced(bytes, span, value)
}
