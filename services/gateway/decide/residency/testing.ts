import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { TestContext } from 'node:test'

/** A server on a loopback address with counters of its connections and requests. */
export async function serverOn(t: TestContext, address: string) {
  let [connections, requests] = [0, 0]
  const server = createServer((_, response) => {
    requests++
    response.end('here')
  })
  server.on('connection', () => connections++)
  server.listen(0, address)
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const bound = server.address()
  assert.ok(bound !== null && typeof bound === 'object')
  return { url: `http://${address}:${bound.port}/`, connections: () => connections, requests: () => requests }
}
