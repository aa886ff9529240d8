import type { GatewayProcess } from '../gateway.ts'

/** Calls a tool of a server as `default/assistant`, without a handshake; answers once the whole answer has come. */
export async function callTool(
  { url, token }: Pick<GatewayProcess, 'url' | 'token'>,
  server: string,
  name: string,
  args?: object,
): Promise<{ readonly status: number; readonly text: string }> {
  const params = { name, ...(args !== undefined && { arguments: args }) }
  const response = await fetch(`${url}/mcp/${server}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  })
  return { status: response.status, text: await response.text() }
}
