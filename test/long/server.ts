import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { parseStrict } from '@plat/core'
import { closed, listening } from '@plat/testkit/local'
import { CANARY } from './request.ts'

/** An MCP server that answers every call, keeps nothing, and counts what should never have reached it. */
export interface StrictServer {
  readonly url: string
  /** Requests so far. */
  readonly received: number
  /** Received requests that the gateway had to refuse, and bodies that are not messages. */
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
    // A request that the gateway aborted was not executed.
    const body = await buffer(request).catch(() => null)
    if (body === null) return
    received++
    if (leaks.length < MAX_LEAKS && !mayPass(request.method, body)) leaks.push(`${request.method} ${body}`)
    response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER)
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    get received() {
      return received
    },
    leaks,
    async close() {
      await closed(server)
    },
  }
}

/** Whether it is one valid JSON-RPC 2.0 message that may pass. A request without a body belongs to a stream or a session. */
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
