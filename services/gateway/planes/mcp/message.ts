import { findSpan, hasPlainNumbers, parseLossless, type Span } from '@plat/core'
import type { Body } from '../../call/index.ts'
import { isObject, type JsonObject, member, parsedOrUndefined } from '../wire/json.ts'
import type { Era } from './classify.ts'
import type { Origin, Sealed } from './seal/seal.ts'

/** The reserved members of `params._meta` of revision 2026-07-28. */
export const META_VERSION = 'io.modelcontextprotocol/protocolVersion'
export const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

/** A value to write anew in the body before it goes upstream. */
export interface Replacement {
  readonly path: readonly string[]
  /** JSON. */
  readonly with: Uint8Array
}

/** What the plane knows of a request beyond the words that all planes share. Filled while reading, kept until the answer. */
export interface McpRequest {
  /** The JSON-RPC kind of a POST; GET is `listen`, DELETE is `end`. */
  readonly kind: 'request' | 'notification' | 'answer' | 'listen' | 'end'
  readonly era: Era
  readonly revision: string
  readonly method: string
  /** What `params` names: a tool, a prompt, a resource. */
  readonly name: string | null
  /** The parsed id of the message; undefined where it has none. */
  readonly id: unknown
  /** The message as the client wrote it; null for GET and DELETE. */
  readonly bytes: Uint8Array | null
  readonly session: Sealed | null
  /** The event after which a stream is taken up again. */
  readonly lastEvent: Sealed | null
  /** Everything else that the client sent under seal, opened; it must lead to the server that is called. */
  readonly opened: readonly Sealed[]
  /** Values under seal, as the upstream knows them. */
  readonly replaced: readonly Replacement[]
  /** Members to cut out of the body before it goes upstream. */
  readonly withheld: readonly (readonly string[])[]
}

/**
 * The JSON-RPC id of the request that a response is for, as the client wrote it: its own, or that of the request whose stream is
 * resumed. Null where no response may come.
 */
export function idOf({ kind, bytes, lastEvent }: McpRequest): Uint8Array | null {
  if (kind === 'listen') return lastEvent?.awaits === undefined ? null : Buffer.from(lastEvent.awaits)
  return kind === 'request' && bytes !== null ? slice(bytes, ['id']) : null
}

/** The id of a request whose response is awaited. */
export interface AwaitedId {
  readonly value: unknown
  /** JSON as the client wrote it. Only numbers that a double cannot hold need it, so it is looked for on demand. */
  literal(): Uint8Array
}

/** `idOf` with its value. */
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

/** An id by its JSON. */
export function parsedId(json: Buffer): AwaitedId {
  return { value: JSON.parse(json.toString('utf8')), literal: () => json }
}

const NO_BYTES = new Uint8Array(0)

/** The method of that request; that of the message itself where no response may come. */
export function requestMethodOf({ kind, method, lastEvent }: McpRequest): string {
  return kind === 'listen' ? (lastEvent?.origin?.method ?? method) : method
}

/** `params._meta.progressToken` as the client wrote it. */
export function progressTokenOf({ bytes }: McpRequest): Uint8Array | null {
  return bytes === null ? null : slice(bytes, ['params', '_meta', 'progressToken'])
}

/** The call that a request follows from: an answer from its question, a round from the one before, a stream from its first part. */
export function originOf({ opened, lastEvent }: McpRequest): Origin | null {
  return lastEvent?.origin ?? opened.find((one) => one.origin !== undefined)?.origin ?? null
}

/** A message whose bytes passed the strict scanner. */
export class McpBody implements Body {
  readonly bytes: Uint8Array
  readonly value: unknown
  readonly #argumentsOnly: boolean
  #args: Uint8Array | null | undefined

  /** `argumentsOnly`: what is hashed and judged are the bytes of `params.arguments`, not the whole message. */
  constructor(bytes: Uint8Array, value: unknown, argumentsOnly: boolean) {
    this.bytes = bytes
    this.value = value
    this.#argumentsOnly = argumentsOnly
  }

  /** The same message with other bytes, which passed the strict scanner as well. */
  rewritten(bytes: Uint8Array): McpBody {
    return new McpBody(bytes, parsedOrUndefined(bytes), this.#argumentsOnly)
  }

  /** Looked for once: policy, record and redaction all ask. */
  get args(): Uint8Array | null {
    if (this.#args === undefined) {
      this.#args = this.#argumentsOnly ? slice(this.bytes, ['params', 'arguments']) : this.bytes
    }
    return this.#args
  }

  /**
   * `params.inputResponses`, and the members of `params._meta` that are not the protocol's: approvals are bound to them, and guards
   * read them. They are looked at as parsed; their bytes are read only where there are some.
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

  /** `params.inputResponses`; before 2026-07-28 each answer is a message: a map of its id to its result or error. */
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

  /** `params._meta` as it came. */
  get meta(): Uint8Array | null {
    const isThere = member(member(this.value, 'params'), '_meta') !== undefined
    return isThere ? slice(this.bytes, ['params', '_meta']) : null
  }
}

/** Members of `params._meta` that the protocol defines for one sending: they say nothing of what is requested. */
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

/** Names of members that are not known. Nearly every object has none, and costs no list then. */
export function namesBeyond(known: ReadonlySet<string>, object: JsonObject): readonly string[] {
  let names: string[] | null = null
  for (const name in object) {
    if (known.has(name)) continue
    names ??= []
    names.push(name)
  }
  return names ?? NO_NAMES
}

/** The result of a message; null where it has none that is an object. Each response is asked for it several times. */
export function resultOf(message: unknown): JsonObject | null {
  if (!isObject(message)) return null
  const { result } = message
  return isObject(result) ? result : null
}

const SENDING_NAMES = [...SENDING]

/** Names of the members of `_meta` that the protocol does not define. */
export function freeMetaNames(meta: unknown): readonly string[] {
  return isObject(meta) ? namesBeyond(SENDING, meta) : NO_NAMES
}

/** `_meta` without the protocol's own members; undefined where nothing is left. */
function freeMeta(meta: unknown): unknown {
  if (!isObject(meta)) return meta
  if (!Object.keys(meta).some((name) => !SENDING.has(name))) return undefined
  const own = SENDING_NAMES.filter((name) => Object.hasOwn(meta, name))
  if (own.length === 0) return meta
  const free = { ...meta }
  for (const name of own) Reflect.deleteProperty(free, name)
  return free
}

/** The bytes of a member's value, as the sender wrote them. */
export function slice(bytes: Uint8Array, path: readonly string[]): Uint8Array | null {
  const span = findSpan(bytes, path)
  return span === null ? null : bytes.subarray(span[0], span[1])
}

/** The same bytes with other ones at `span`. */
export function spliced(bytes: Uint8Array, [start, end]: Span, replacement: Uint8Array): Uint8Array {
  return Buffer.concat([bytes.subarray(0, start), replacement, bytes.subarray(end)])
}

/** The same bytes with the value at `path` written anew; a path that leads nowhere changes nothing. */
export function withValue(bytes: Uint8Array, path: readonly string[], value: Uint8Array): Uint8Array {
  const span = findSpan(bytes, path)
  return span === null ? bytes : spliced(bytes, span, value)
}
