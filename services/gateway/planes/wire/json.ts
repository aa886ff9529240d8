import { JsonError, MESSAGE_LIMITS, parseChecked, parseStrict } from '@plat/core'
import { type Denial, deny } from '../../call/index.ts'

export { member } from '@plat/core'

/** Parses JSON that was checked; returns undefined when it is invalid. */
export function parsedOrUndefined(json: Uint8Array): unknown {
  try {
    return parseChecked(textOf(json))
  } catch {
    return undefined
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** JSON-RPC "parse error". */
const PARSE_ERROR = -32700

/** Parses a message strictly. Returns a denial for invalid JSON and for JSON that parsers read differently, such as repeated members. */
export function strictMessage(bytes: Uint8Array): { readonly value: unknown } | Denial {
  try {
    return { value: parseStrict(bytes, MESSAGE_LIMITS) }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return deny('invalid_request', `the body is not strict JSON: ${error.message}`, { data: { rpc: PARSE_ERROR } })
  }
}
