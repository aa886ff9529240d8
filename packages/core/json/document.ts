import { ByteBuffer } from '../collections/byte-buffer.ts'
import { parseStrict } from './check.ts'

export type JsonObject = Readonly<Record<string, unknown>>

/** Returns whether a value is a JSON object: not null, not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns a member of an object; undefined for other values and for members that the object inherits. */
export function member(value: unknown, name: string): unknown {
  if (!isObject(value)) return undefined
  const found = value[name]
  // JSON has no functions, and all that objects inherit are functions, except `__proto__`.
  if (typeof found !== 'function' && name !== '__proto__') return found
  return Object.hasOwn(value, name) ? found : undefined
}

/**
 * Reads a JSON document that came over the network: exactly one value in valid UTF-8, by the rules of `parseStrict`. Returns undefined when
 * it is anything else.
 */
export function readJson(document: Uint8Array | string): unknown {
  try {
    return parseStrict(document)
  } catch {
    return undefined
  }
}

/** The same for a document that has to be an object; null when it is anything else. */
export function readJsonObject(document: Uint8Array | string): JsonObject | null {
  const value = readJson(document)
  return isObject(value) ? value : null
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The text of a document in valid UTF-8; null when it is not. */
export function readUtf8(document: Uint8Array): string | null {
  try {
    return utf8.decode(document)
  } catch {
    return null
  }
}

/** The bytes of a body; null when they are more than `maxBytes`, and then the rest is not read. */
export async function readBody(body: AsyncIterable<Uint8Array> | null, maxBytes: number): Promise<Uint8Array | null> {
  const bytes = new ByteBuffer()
  if (body === null) return bytes.take()
  const parts = body[Symbol.asyncIterator]()
  for (;;) {
    const { done, value } = await parts.next()
    if (done === true) return bytes.take()
    if (bytes.size + value.byteLength > maxBytes) {
      // Not awaited: a branch of a stream that was split is cancelled only with the other one.
      parts.return?.().catch(() => {})
      return null
    }
    bytes.append(value)
  }
}
