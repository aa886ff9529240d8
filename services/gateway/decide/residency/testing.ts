import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { listening } from '@plat/testkit/local'

/** A server on a loopback address with counters of its connections and requests. */
export async function serverOn(t: TestContext, address: string) {
  let [connections, requests] = [0, 0]
  const server = createServer((_, response) => {
    requests++
    response.end('here')
  })
  server.on('connection', () => connections++)
  const port = await listening(server, address)
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://${address}:${port}/`, connections: () => connections, requests: () => requests }
}
