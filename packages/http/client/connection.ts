import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '@plat/core'
import { TimeoutError } from '../dial/errors.ts'
import type { OpenSocket } from '../dial/socket.ts'
import { IdleTimer } from './alarm.ts'
import { MalformedResponseError } from './head.ts'
import { type ResponseEvents, ResponseParser } from './parser.ts'
import { JOIN_BYTES, joined, type StreamedBody } from './request.ts'
import type { Carrier, Transfer } from './transfer.ts'

/** Limit for establishing a connection including name look-up and TLS, in milliseconds. */
const CONNECT_MS = 10_000
/** How long an idle connection is kept without a server limit, in milliseconds: less than the 5 s of common servers. */
const KEEP_ALIVE_MS = 4_000
/** Maximum time an idle connection is kept, whatever the server states in `Keep-Alive: timeout=`, in milliseconds. */
const KEEP_ALIVE_MAX_MS = 30_000
/** Subtracted from the server's limit, so that its close and the next request do not cross, in milliseconds. */
const KEEP_ALIVE_MARGIN_MS = 1_000
/** A connection idle for longer is used only after one turn of the event loop, so that a close that has already arrived is read first. */
const RECHECK_AFTER_MS = 250

export interface ConnectionOwner {
  readonly clock: Clock
  readonly open: OpenSocket
  /** The connection can carry another request. */
  free(connection: Connection): void
  /** The connection is closed. */
  gone(connection: Connection): void
  /** Sends a transfer again over a new connection. */
  again(transfer: Transfer): void
}

/** A connection that carries one request and response at a time, without pipelining. */
export class Connection implements Carrier, ResponseEvents {
  readonly #home: ConnectionOwner
  readonly #parser = new ResponseParser(this)
  readonly #alarm: IdleTimer
  readonly #socket: Socket
  #transfer: Transfer | null
  #connected = false
  #gone = false
  /** A request has been answered on this connection. */
  #served = false
  /** A byte has arrived since the current request was sent. */
  #received = false
  /** The final response head is complete: silence is now limited by `pauseTimeoutMs`. */
  #inBody = false
  /** The kernel has not accepted any byte of the current request. */
  #unsent = true
  #idleSince = 0
  #paused = false
  /** A streamed body is being sent. */
  #sending = false

  /** Throws when the address is forbidden. */
  constructor(home: ConnectionOwner, transfer: Transfer) {
    this.#home = home
    this.#transfer = transfer
    this.#alarm = new IdleTimer(home.clock, () => this.#timeUp())
    this.#socket = home.open((bytes) => this.#read(bytes), transfer.request.caller)
    this.#socket.once(home.open.ready, () => this.#ready())
    this.#socket.on('error', (error) => this.#lost(error))
    this.#socket.on('end', () => this.#ended())
    this.#socket.on('close', () => this.#lost(new MalformedResponseError('the connection was closed')))
    transfer.carrier = this
    this.#alarm.set(CONNECT_MS)
  }

  /** Sends a request. The connection must be free. */
  carry(transfer: Transfer): void {
    this.#transfer = transfer
    transfer.carrier = this
    this.#unsent = true
    this.#received = false
    if (this.#home.clock.monotonic() - this.#idleSince < RECHECK_AFTER_MS) {
      this.#send(transfer)
      return
    }
    this.#alarm.off()
    setImmediate(() => {
      if (this.#transfer === transfer) this.#send(transfer)
    })
  }

  pause(): void {
    this.#paused = true
    this.#socket.pause()
    if (this.#inBody) this.#alarm.off()
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    if (this.#inBody) this.#expectBody()
    this.#socket.resume()
  }

  cut(): void {
    this.#transfer = null
    this.#leave()
  }

  /** Closes the connection; its transfer fails. */
  abandon(error: Error): void {
    const transfer = this.#transfer
    this.cut()
    transfer?.fail(error)
  }

  head(status: number, headers: IncomingHttpHeaders): void {
    this.#inBody = true
    this.#expectBody()
    this.#transfer?.receiver.onHead(status, headers)
  }

  data(bytes: Buffer): void {
    this.#transfer?.receiver.onData(bytes)
  }

  #ready(): void {
    this.#connected = true
    if (this.#transfer !== null) this.#send(this.#transfer)
  }

  #send(transfer: Transfer): void {
    const { head, request } = transfer
    const { body } = request
    this.#inBody = false
    this.#parser.begin(request.method)
    if (body === null || body.length === 0) this.#socket.write(head, 'latin1')
    else if (!(body instanceof Uint8Array)) {
      this.#socket.write(head, 'latin1')
      void this.#stream(transfer, body)
    } else if (body.length <= JOIN_BYTES) this.#socket.write(joined(head, body))
    else {
      this.#socket.cork()
      this.#socket.write(head, 'latin1')
      this.#socket.write(body)
      this.#socket.uncork()
    }
    // When a write fails at once, the kernel has accepted none of it; a later failure does not prove that.
    this.#unsent = this.#socket.errored !== null
    this.#alarm.set(request.headersTimeoutMs)
  }

  /** Sends a streamed body as fast as the server reads it, until it is complete or the request has ended. Never rejects. */
  async #stream(transfer: Transfer, body: StreamedBody): Promise<void> {
    this.#sending = true
    let left = body.length
    const isOver = () => this.#transfer !== transfer || this.#gone
    try {
      for await (const chunk of body.chunks()) {
        if (isOver()) return
        left -= chunk.length
        if (left < 0) throw new RangeError('a body is longer than it states')
        if (!this.#socket.write(chunk)) await once(this.#socket, 'drain')
        if (isOver()) return
        if (!this.#inBody) this.#alarm.set(transfer.request.headersTimeoutMs)
      }
      if (left > 0) throw new RangeError('a body is shorter than it states')
      this.#sending = false
    } catch (error) {
      if (!isOver()) this.abandon(error instanceof Error ? error : new Error(String(error)))
    }
  }

  #expectBody(): void {
    if (this.#transfer !== null) this.#alarm.set(this.#transfer.request.pauseTimeoutMs)
  }

  #read(bytes: Buffer): void {
    // Unsolicited bytes belong to no request: the connection can no longer be trusted.
    if (this.#transfer === null) {
      this.#leave()
      return
    }
    if (this.#unsent) {
      this.#lost(new MalformedResponseError('the server sent bytes before the request'))
      return
    }
    // Partial heads do not extend the deadline.
    if (this.#inBody) this.#expectBody()
    this.#received = true
    try {
      const used = this.#parser.push(bytes)
      if (this.#parser.done) this.#finished(used === bytes.length)
    } catch (error) {
      this.#lost(error instanceof Error ? error : new MalformedResponseError(String(error)))
    }
  }

  /** The server has closed its side. */
  #ended(): void {
    if (this.#unsent) {
      this.#lost(new MalformedResponseError('the connection ended before the request was sent'))
      return
    }
    try {
      this.#parser.close()
      this.#finished(false)
    } catch (error) {
      this.#lost(error instanceof Error ? error : new MalformedResponseError(String(error)))
    }
  }

  /** When a response completes before its request is fully sent, the connection cannot be reused: the rest would be read as a new request. */
  #finished(clean: boolean): void {
    const transfer = this.#transfer
    this.#transfer = null
    this.#served = true
    const { hintMs, keeps } = this.#parser
    const idleMs = hintMs === null ? KEEP_ALIVE_MS : Math.min(KEEP_ALIVE_MAX_MS, hintMs - KEEP_ALIVE_MARGIN_MS)
    const usable = clean && keeps && idleMs > 0 && !this.#gone && !this.#sending && this.#socket.writableLength === 0
    if (usable) {
      if (this.#paused) this.#socket.resume()
      this.#paused = false
      this.#idleSince = this.#home.clock.monotonic()
      this.#alarm.set(idleMs)
      this.#home.free(this)
    } else this.#leave()
    transfer?.end()
  }

  #timeUp(): void {
    this.abandon(
      new TimeoutError(this.#connected ? 'The server fell silent.' : 'The connection did not stand in time.'),
    )
  }

  /**
   * Called when the connection fails. A server may close an idle connection at the moment a request is sent on it. Such a request is sent once more
   * over a new connection when that is safe (RFC 9112, section 9.3.1): the connection had served before, no byte of a response has arrived, and
   * either the method is read-only, or the server certainly has not read a byte of the request. That is certain in two cases: the close was read
   * before the request was written, or the write failed as a whole. A POST accepted by the kernel is never repeated: the server may have acted on
   * it, and a tool would be called twice.
   */
  #lost(error: Error): void {
    const transfer = this.#transfer
    this.cut()
    if (transfer === null) return
    const { method } = transfer.request
    const isSafe = this.#unsent || method === 'GET' || method === 'HEAD'
    const repeatable = this.#served && !this.#received && !transfer.resent && isSafe
    if (repeatable) this.#home.again(transfer)
    else transfer.fail(error)
  }

  #leave(): void {
    if (this.#gone) return
    this.#gone = true
    this.#alarm.stop()
    this.#socket.destroy()
    this.#home.gone(this)
  }
}
