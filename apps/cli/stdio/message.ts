/** Messages of JSON-RPC as bytes: only ids and tokens are replaced, everything else stays as it was written. */
import { findSpan, isObject, JsonError, type JsonObject, MESSAGE_LIMITS, parseStrict } from '@plat/core'

/** Member of `_meta` that names the subscription of a notification (revision 2026-07-28). */
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'

export const ID_PATH = ['id'] as const
export const TOKEN_PATH = ['params', '_meta', 'progressToken'] as const
export const PROGRESS_PATH = ['params', 'progressToken'] as const
export const CANCELLED_PATH = ['params', 'requestId'] as const
export const SUBSCRIPTION_PATH = ['params', '_meta', SUBSCRIPTION] as const
export const RESULT_SUBSCRIPTION_PATH = ['result', '_meta', SUBSCRIPTION] as const

export type MessageKind = 'request' | 'notification' | 'response'

export interface Message {
  readonly kind: MessageKind
  /** Empty for a response. */
  readonly method: string
  readonly value: JsonObject
  readonly bytes: Uint8Array
}

/** Reads one JSON-RPC message. Returns null for anything else: invalid UTF-8, broken JSON, a batch. */
export function readMessage(bytes: Uint8Array): Message | null {
  const value = parsed(bytes)
  if (!isObject(value) || value.jsonrpc !== '2.0') return null
  const { id, method } = value
  const hasId = typeof id === 'string' || typeof id === 'number'
  if (typeof method === 'string') {
    const kind = hasId ? 'request' : id === undefined ? 'notification' : null
    return kind === null ? null : { kind, method, value, bytes }
  }
  const isResponse = method === undefined && (value.result !== undefined) !== (value.error !== undefined)
  return isResponse ? { kind: 'response', method: '', value, bytes } : null
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return parseStrict(bytes, MESSAGE_LIMITS)
  } catch (error) {
    if (error instanceof JsonError) return undefined
    throw error
  }
}

/** Returns the value at a path of a parsed message; undefined if it is absent. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined), value)
}

/** Returns the JSON of the value at a path; null if it is absent. */
export function literalAt(bytes: Uint8Array, path: readonly string[]): Uint8Array | null {
  const span = findSpan(bytes, path)
  return span === null ? null : bytes.subarray(span[0], span[1])
}

/** Returns the message with other JSON at a path; unchanged if there is nothing at the path. */
export function replaced(bytes: Uint8Array, path: readonly string[], json: Uint8Array | string): Uint8Array {
  const span = findSpan(bytes, path)
  if (span === null) return bytes
  return Buffer.concat([bytes.subarray(0, span[0]), Buffer.from(json), bytes.subarray(span[1])])
}

const NEWLINE = 0x0a
const RETURN = 0x0d
const SPACE = 0x20

/** Returns a valid message in one line: line ends can only be white space between its values. */
export function inOneLine(bytes: Uint8Array): Uint8Array {
  if (!bytes.includes(NEWLINE) && !bytes.includes(RETURN)) return bytes
  return bytes.map((byte) => (byte === NEWLINE || byte === RETURN ? SPACE : byte))
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}
