import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Server as TlsServer } from 'node:https'

/** Starts a server for this machine alone and answers the port that it got. */
export async function listening(server: Server | TlsServer): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}

/** Stops a server and cuts its connections. */
export async function closed(server: Server | TlsServer): Promise<void> {
  const over = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await over
}
