import { createServer, request as send } from 'node:http'
import { closed, listening } from '../local.ts'
import type { McpFixture } from './fixture.ts'

/** A loopback forwarder for clients that cannot carry a token. */
export interface Shim extends McpFixture {
  /** From now on requests go to `target` with `token`. */
  aim(target: string, token: string): void
}

/** Starts a forwarder that adds a token to every request; Host, Origin and all else pass as they came. */
export async function startShim(): Promise<Shim> {
  let aim = { hostname: '', port: '', pathname: '', token: '' }
  const server = createServer((incoming, response) => {
    const { hostname, port, pathname, token } = aim
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` }
    const outgoing = send({ hostname, port, path: pathname, method: incoming.method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    response.on('close', () => outgoing.destroy())
    incoming.pipe(outgoing)
  })
  const port = await listening(server)
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    aim(target, token) {
      const { hostname, port, pathname } = new URL(target)
      aim = { hostname, port, pathname, token }
    },
    async close() {
      await closed(server)
    },
  }
}
