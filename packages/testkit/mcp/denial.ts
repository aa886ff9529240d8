import assert from 'node:assert/strict'

/** Member of a tool result's `_meta` with the refusal. */
const DENIAL_MEMBER = 'plat.dev/denial'

/** A refusal of the gateway with the members of a JSON-RPC error. */
export interface RpcDenial {
  readonly code: number
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Returns the refusal in a JSON-RPC response, whether it is a tool result or an error; null when there is none. */
export function denialIn(response: unknown): RpcDenial | null {
  const { error, result } = Object(response)
  return error === undefined ? denialInResult(result) : { code: error.code, message: error.message, data: error.data }
}

/** Returns the refusal in a JSON-RPC response. Fails when there is none. */
export function denialOf(response: unknown): RpcDenial {
  return denialIn(response) ?? assert.fail(`no refusal: ${JSON.stringify(response)}`)
}

function denialInResult(result: unknown): RpcDenial | null {
  const denial = Object(Object(result)._meta)[DENIAL_MEMBER]
  if (denial === undefined || Object(result).isError !== true) return null
  const { code, reason, ...data } = Object(denial)
  return { code, message: reason, data }
}

/** The error of a refused tool call, with the members of the clients' errors. */
export class ToolDeniedError extends Error implements RpcDenial {
  readonly code: number
  readonly data: RpcDenial['data']

  constructor({ code, message, data }: RpcDenial) {
    super(message)
    this.name = 'ToolDeniedError'
    this.code = code
    this.data = data
  }
}

/** Resolves to the result of a tool call; rejects if it is a refusal, as a client does for a JSON-RPC error. */
export async function passed<T>(call: Promise<T>): Promise<T> {
  const result = await call
  const denial = denialInResult(result)
  if (denial !== null) throw new ToolDeniedError(denial)
  return result
}
