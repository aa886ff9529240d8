import { createConnection, createServer, type Server, type Socket } from 'node:net'
import path from 'node:path'
import { tempFolder } from '../local.ts'
import type { TestPostgres } from './server.ts'

/** File name of the server's socket: it listens on the default port. */
const SOCKET = '.s.PGSQL.5432'

/** A way to the server on which responses can be lost: the server has done what it was sent, and the client cannot know. */
export class PostgresProxy {
  readonly #postgres: TestPostgres
  readonly #dir = tempFolder()
  readonly #server: Server
  readonly #connections = new Set<Connection>()

  /** Starts with the first connection; ends before the Postgres server does. */
  constructor(postgres: TestPostgres) {
    this.#postgres = postgres
    const target = path.join(postgres.socketFolder, SOCKET)
    this.#server = createServer((client) => {
      const connection = new Connection(client, createConnection(target))
      this.#connections.add(connection)
      client.once('close', () => void this.#connections.delete(connection))
    })
    this.#server.listen(path.join(this.#dir, SOCKET))
    postgres.beforeClose(() => this.#close())
  }

  get dsn(): string {
    return this.#postgres.dsnAt(this.#dir)
  }

  /** Each connection ends at its next response, which is lost. */
  loseResponses(): void {
    for (const connection of this.#connections) connection.losesNext = true
  }

  #close(): void {
    this.#server.close()
    for (const connection of this.#connections) connection.end()
  }
}

class Connection {
  losesNext = false
  readonly #sockets: readonly Socket[]

  constructor(client: Socket, server: Socket) {
    this.#sockets = [client, server]
    const end = () => this.end()
    for (const socket of this.#sockets) socket.on('error', end).on('close', end)
    client.on('data', (bytes) => void server.write(bytes))
    server.on('data', (bytes) => {
      if (this.losesNext) this.end()
      else client.write(bytes)
    })
  }

  end(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}
