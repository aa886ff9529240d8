import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Listen address. An undefined `host` listens on every address of the machine. */
export interface ListenAddress {
  readonly host: string | undefined
  readonly port: number
}

const LAST_PORT = 65_535

/** Parses `:8080`, `127.0.0.1:0`, `[::1]:8080` or `localhost:80`. Returns null for any other text. */
export function parseAddress(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]*)):(\d{1,5})$/.exec(text)
  if (match === null) return null
  const port = Number(match[3])
  if (port > LAST_PORT) return null
  const host = match[1] ?? match[2] ?? ''
  return { host: host === '' ? undefined : host, port }
}

/** Rejects with a message naming the address. */
export function bind(server: Server, text: string, at: { host: string | undefined; port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'the port is in use' : error.message
      reject(new Error(`Cannot listen on ${text}: ${why}.`, { cause: error }))
    }
    server.once('error', failed)
    server.listen(at.host === undefined ? { port: at.port } : { port: at.port, host: at.host }, () => {
      server.off('error', failed)
      resolve()
    })
  })
}

export function addressOf(server: Server): AddressInfo {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server does not listen on a port.')
  return address
}
