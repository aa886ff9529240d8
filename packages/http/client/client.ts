import { type Clock, type PoolBound, poolTable, SharedPool } from '@plat/core'
import { TooManyConnectionsError } from '../dial/errors.ts'
import type { OpenSocket } from '../dial/socket.ts'
import { Connection, type ConnectionOwner } from './connection.ts'
import { MalformedResponseError } from './head.ts'
import { type ClientRequest, RequestHeads } from './request.ts'
import { type Receiver, type Sending, Transfer } from './transfer.ts'

export interface HttpClient {
  /**
   * Sends a request. The receiver is not called before this returns. Throws TypeError on an invalid method, path or header. Redirects are returned.
   */
  send(request: ClientRequest, receiver: Receiver): Sending
}

export interface ClientOptions {
  /** Value of the `Host` header. */
  readonly host: string
  readonly clock: Clock
  readonly open: OpenSocket
  /** Called for each request refused because a connection limit is reached. */
  readonly onRefused?: ((bound: PoolBound) => void) | undefined
}

/** Maximum number of idle connections to one origin; further ones are closed. */
const MAX_IDLE = 256

/** Client of one origin with its connections. The most recently used idle connection is used next, so that surplus ones time out. */
export class OriginClient implements HttpClient, ConnectionOwner {
  readonly clock: Clock
  readonly open: OpenSocket
  readonly #heads: RequestHeads
  readonly #pool: SharedPool
  readonly #all = new Set<Connection>()
  readonly #idle: Connection[] = []
  #retired = false

  constructor(options: ClientOptions) {
    this.#heads = new RequestHeads(options.host)
    this.clock = options.clock
    this.open = options.open
    const { onRefused } = options
    this.#pool = new SharedPool({ name: 'upstream_connections', onRefused })
  }

  send(request: ClientRequest, receiver: Receiver): Sending {
    const transfer = new Transfer(this.#heads.of(request), request, receiver)
    if (!this.#admit(transfer)) return transfer
    const idle = this.#idle.pop()
    if (idle === undefined) this.#connect(transfer)
    else idle.carry(transfer)
    return transfer
  }

  free(connection: Connection): void {
    if (this.#retired || this.#idle.length >= MAX_IDLE) connection.cut()
    else this.#idle.push(connection)
  }

  gone(connection: Connection): void {
    this.#all.delete(connection)
    const at = this.#idle.indexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  again(transfer: Transfer): void {
    transfer.resent = true
    this.#connect(transfer)
  }

  /** Closes idle connections now, and the others when they become idle. */
  retire(): void {
    this.#retired = true
    for (const connection of [...this.#idle]) connection.cut()
  }

  /** Destroys every connection; their requests fail. */
  destroy(): void {
    this.#retired = true
    for (const connection of [...this.#all]) connection.abandon(new MalformedResponseError('the client was closed'))
  }

  /** Number of connections in use by callers. */
  get used(): number {
    return this.#pool.used
  }

  #admit(transfer: Transfer): boolean {
    const { caller } = transfer.request
    if (caller === undefined) this.#pool.add('')
    else {
      const bound = this.#pool.acquire(caller)
      if (bound !== null) {
        this.#failLater(
          transfer,
          new TooManyConnectionsError(
            bound === 'share' ? poolTable.upstream_connections.shares[0].max : this.#pool.total,
          ),
        )
        return false
      }
    }
    transfer.pool = this.#pool
    return true
  }

  #connect(transfer: Transfer): void {
    try {
      if (this.#all.size >= this.#pool.total) throw new TooManyConnectionsError(this.#pool.total)
      this.#all.add(new Connection(this, transfer))
    } catch (error) {
      this.#failLater(transfer, error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** Calls the receiver only after `send` has returned. */
  #failLater(transfer: Transfer, error: Error): void {
    queueMicrotask(() => transfer.fail(error))
  }
}
