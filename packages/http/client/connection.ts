import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '@plat/core'
import { TimeoutError } from '../dial/errors.ts'
import type { OpenSocket } from '../dial/socket.ts'
import { IdleTimer } from './alarm.ts'
import { MalformedResponseError } from './head.ts'
import { type ResponseEvents, ResponseParser } from './parser.ts'
import { JOIN_BYTES, joined } from './request.ts'
import type { Carrier, Transfer } from './transfer.ts'

/** Milliseconds until a connection must stand, name look-up and TLS included. */
const CONNECT_MS = 10_000
/** Milliseconds that an idle connection is kept when the server names no limit: less than the 5 s after which common servers close it. */
const KEEP_ALIVE_MS = 4_000
/** Longest that an idle connection is kept, whatever limit the server names (`Keep-Alive: timeout=`), in milliseconds. */
const KEEP_ALIVE_MAX_MS = 30_000
/** Milliseconds by which the server's own limit is undercut, so that its end and our next request do not meet on the way. */
const KEEP_ALIVE_MARGIN_MS = 1_000
/** A connection idle for longer is used only after one turn of the event loop, in which an end that has already arrived is read. */
const RECHECK_AFTER_MS = 250

/** What a connection tells the client that opened it. */
export interface ConnectionOwner {
  readonly clock: Clock
  readonly open: OpenSocket
  /** It can carry another request. */
  free(connection: Connection): void
  /** It is gone. */
  gone(connection: Connection): void
  /** Sends a transfer again, over a new connection. */
  again(transfer: Transfer): void
}

/** One connection: a request and its response at a time, no pipelining. */
export class Connection implements Carrier, ResponseEvents {
  readonly #home: ConnectionOwner
  readonly #parser = new ResponseParser(this)
  readonly #alarm: IdleTimer
  readonly #socket: Socket
  #transfer: Transfer | null
  #connected = false
  #gone = false
  /** A request has been answered over it. */
  #served = false
  /** A byte has come since the current request was sent. */
  #heard = false
  /** The final head of the current response is complete, so silence is now limited by `pauseTimeoutMs`. */
  #inBody = false
  /** The kernel has not accepted a byte of the current request. */
  #unsent = true
  #idleSince = 0
  #paused = false

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

  /** Sends a request. Only on a connection that is free. */
  carry(transfer: Transfer): void {
    this.#transfer = transfer
    transfer.carrier = this
    this.#unsent = true
    this.#heard = false
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
    else if (body.length <= JOIN_BYTES) this.#socket.write(joined(head, body))
    else {
      this.#socket.cork()
      this.#socket.write(head, 'latin1')
      this.#socket.write(body)
      this.#socket.uncork()
    }
    // A write that fails at once has been accepted by the kernel in no part; a later failure says nothing of that kind.
    this.#unsent = this.#socket.errored !== null
    this.#alarm.set(request.headersTimeoutMs)
  }

  #expectBody(): void {
    if (this.#transfer !== null) this.#alarm.set(this.#transfer.request.pauseTimeoutMs)
  }

  #read(bytes: Buffer): void {
    // What comes unasked belongs to no request: nothing on this connection can be trusted.
    if (this.#transfer === null) {
      this.#leave()
      return
    }
    if (this.#unsent) {
      this.#lost(new MalformedResponseError('the server sent bytes before the request'))
      return
    }
    // Parts of a head do not extend its deadline.
    if (this.#inBody) this.#expectBody()
    this.#heard = true
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

  /** A request that is not out yet when its answer is complete was not wanted whole: what follows it would be taken for a new one. */
  #finished(clean: boolean): void {
    const transfer = this.#transfer
    this.#transfer = null
    this.#served = true
    const { hintMs, keeps } = this.#parser
    const idleMs = hintMs === null ? KEEP_ALIVE_MS : Math.min(KEEP_ALIVE_MAX_MS, hintMs - KEEP_ALIVE_MARGIN_MS)
    const usable = clean && keeps && idleMs > 0 && !this.#gone && this.#socket.writableLength === 0
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
   * The connection died. A server may close an idle connection in the very moment in which a request is sent over it. Such a
   * request is sent once more over a new connection when it is safe (RFC 9112, section 9.3.1): the connection had served
   * before, not one byte of a response has come, and either the method only reads, or the server certainly has not read a byte
   * of the request. That is certain in two cases: the end of the connection was read before the request was written, or the write
   * failed as a whole. A POST that the kernel has accepted is never repeated: the server may have begun to act on it, and a tool
   * would be called twice.
   */
  #lost(error: Error): void {
    const transfer = this.#transfer
    this.cut()
    if (transfer === null) return
    const { method } = transfer.request
    const isSafe = this.#unsent || method === 'GET' || method === 'HEAD'
    const repeatable = this.#served && !this.#heard && !transfer.resent && isSafe
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
