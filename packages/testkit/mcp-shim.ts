import { once } from 'node:events'
import { createServer, request as send } from 'node:http'
import type { McpFixture } from './mcp-fixture.ts'

/** A loopback forwarder that adds a token to every request, for clients that cannot carry one. Host and Origin pass as they came. */
export async function startShim(target: string, token: string): Promise<McpFixture> {
  const { hostname, port, pathname } = new URL(target)
  const server = createServer((incoming, response) => {
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` }
    const outgoing = send({ hostname, port, path: pathname, method: incoming.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    response.on('close', () => outgoing.destroy())
    incoming.pipe(outgoing)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${address !== null && typeof address === 'object' ? address.port : 0}/mcp`,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}
