import { denialOf } from '@plat/testkit/mcp/denial'

const ACCEPT = 'application/json, text/event-stream'

/** A request; absent members have the values of an ordinary call. */
export interface TestRequest {
  readonly body?: string
  readonly method?: string
  readonly server?: string
  readonly session?: string
  readonly headers?: Record<string, string>
  readonly signal?: AbortSignal
}

/** Sends one request to a gateway whose planes are served at `url`. */
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

/** Returns a call of a tool; `id` is the JSON of its id. */
export const call = (tool: string, id = '7') =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${tool}","arguments":{}}}`

/** The `_meta` member of each message of revision 2026-07-28. */
export const modernMeta =
  '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'

/** Returns the headers that mirror such a message. */
export const modernHeaders = (method: string, name?: string) => ({
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...(name !== undefined && { 'mcp-name': name }),
})

/** Returns the HTTP status, the JSON-RPC code and the name of a refusal, and the id of its message. */
export async function errorOf(
  response: Response,
): Promise<{ status: number; code: number; error: string; id: unknown }> {
  const body = JSON.parse(await response.text())
  const { code, data } = denialOf(body)
  return { status: response.status, code, error: String(data.error), id: body.id }
}
