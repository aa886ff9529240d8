import { isObject, type JsonObject, readJsonObject } from '@plat/core'
import type { Pkcs11Uri } from '@plat/keys'

/** First line of a helper: the version of the protocol (docs/pkcs11-helper.md). */
export const HELLO = '{"platKeyHelper":1}'
/** Longest line in both directions, in bytes. */
export const MAX_LINE_BYTES = 64 * 1024

export type HelperOperation = 'describe' | 'sign' | 'wrap' | 'unwrap'

export interface HelperRequest {
  readonly id: number
  readonly operation: HelperOperation
  readonly key: Pkcs11Uri
  /** Of `describe`: what the key is for. */
  readonly purpose?: 'sign' | 'encrypt'
  /** Of `sign`: `EdDSA`, `ES256`, `RS256` or `ML-DSA-44|65|87`. */
  readonly algorithm?: string
  /** Base64. */
  readonly data?: string
}

/** Result of an operation, or why there is none. */
export type HelperResponse = { readonly id: number } & (
  | { readonly result: JsonObject }
  | { readonly error: { readonly kind: 'refused' | 'unavailable'; readonly message: string } }
)

const MAX_MESSAGE_CHARS = 200

/** Parses a line of a helper; null for one that breaks the protocol. */
export function readHelperResponse(line: string): HelperResponse | null {
  const value = readJsonObject(Buffer.from(line))
  if (value === null || typeof value.id !== 'number') return null
  const { id, result, error } = value
  if (isObject(result)) return { id, result }
  if (!isObject(error) || typeof error.message !== 'string') return null
  const message = error.message.replace(/\p{Cc}/gu, ' ').slice(0, MAX_MESSAGE_CHARS)
  return { id, error: { kind: error.kind === 'refused' ? 'refused' : 'unavailable', message } }
}
