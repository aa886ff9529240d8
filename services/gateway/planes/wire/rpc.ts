import { JsonError, parseStrict } from '@plat/core'
import { type Denial, deny } from '../../call/index.ts'

/** JSON-RPC "parse error". */
const PARSE_ERROR = -32700

/** What a posted message says, when its bytes are JSON in which no two readers can see different things. */
export function strictMessage(bytes: Uint8Array): { readonly value: unknown } | Denial {
  try {
    return { value: parseStrict(bytes) }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    return deny('invalid_request', `the body is not strict JSON: ${error.message}`, { data: { rpc: PARSE_ERROR } })
  }
}
