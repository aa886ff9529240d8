const ACCEPT = 'application/json, text/event-stream'

/** One request; what is left out is what an ordinary call has. */
export interface TestRequest {
  readonly body?: string
  readonly method?: string
  readonly server?: string
  readonly session?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

/** Sends one request to a gateway whose planes stand at `url`. */
export function askAt(
  url: string,
  { body, method = 'POST', server = 'notes', session = 'alice', headers = {}, signal }: TestRequest,
): Promise<Response> {
  return fetch(url + server, {
    method,
    headers: { authorization: `Bearer ${session}`, accept: ACCEPT, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body }),
    ...(signal !== undefined && { signal }),
  })
}

/** A call of a tool, with the bytes of its id. */
export const call = (tool: string, id = '7') =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":{}}}`

/** What each message of 2026-07-28 says of itself. */
export const modernMeta =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'

/** The headers that mirror such a message. */
export const modernHeaders = (method: string, name?: string) => ({
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...(name !== undefined && { 'mcp-name': name }),
})

/** HTTP status, and code, word and id of the JSON-RPC error. */
export async function errorOf(
  response: Response,
): Promise<{ status: number; code: number; error: string; id: unknown }> {
  const body = JSON.parse(await response.text())
  return { status: response.status, code: body.error.code, error: body.error.data.error, id: body.id }
}
