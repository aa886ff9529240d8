import { once } from 'node:events'
import { createServer } from 'node:http'
import { parseStrict } from '@plat/core'
import { CANARY } from './request.ts'

/** An MCP server that answers every call, keeps nothing, and counts what should never have reached it. */
export interface StrictServer {
  readonly url: string
  /** Requests so far. */
  readonly received: number
  /** What reached it and must not have: calls that had to be refused, and bodies that are no message. */
  readonly leaks: readonly string[]
  close(): Promise<void>
}

/** Leaks that are kept; one is too many already. */
const MAX_LEAKS = 20

const ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'

export async function startStrictServer(): Promise<StrictServer> {
  const leaks: string[] = []
  let received = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    received++
    const body = Buffer.concat(chunks)
    if (leaks.length < MAX_LEAKS && !mayPass(request.method, body)) leaks.push(`${request.method} ${body}`)
    response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    get received() {
      return received
    },
    leaks,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

/** Is it one message of JSON-RPC 2.0 that nobody had to stop? A request without a body is a stream's or a session's. */
function mayPass(method: string | undefined, body: Buffer): boolean {
  if (body.length === 0) return method === 'GET' || method === 'DELETE'
  if (body.includes(CANARY)) return false
  try {
    const message = parseStrict(body)
    return typeof message === 'object' && message !== null && 'jsonrpc' in message && message.jsonrpc === '2.0'
  } catch {
    return false
  }
}
