import { type Clock, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import { ServerProcess } from '../child/server-process.ts'
import type { Failure, Reply } from '../http/reply.ts'
import {
  CANCELLED_PATH,
  ID_PATH,
  inOneLine,
  literalAt,
  type Message,
  RESULT_SUBSCRIPTION_PATH,
  readMessage,
  replaced,
  TOKEN_PATH,
  textOf,
  valueAt,
} from '../message.ts'
import type { ServerSpec } from '../protocol.ts'
import { type Open, type Routing, routeNotification } from './routing.ts'
import { ServerRequests } from './server-requests.ts'

/** Calls of one process that wait for a response, and those of one session among them. */
const OPEN_MAX = 512
const OPEN_OF_OWNER_MAX = 128
/** Bytes that a process has not read; further messages are refused. */
const BACKLOG_MAX_BYTES = 8 * 1024 * 1024
/** How long a cancelled call may still be answered, in milliseconds. */
const AFTER_CANCEL_MS = 5_000
/** Dropped messages that are logged; further ones are not. */
const LOGGED_DROPS_MAX = 20

export interface LinkOptions {
  readonly spec: ServerSpec
  /** Revision 2026-07-28 and later: no handshake, and no requests of the server. */
  readonly isModern: boolean
  readonly clock: Clock
  readonly log: Log
  /** Called once when the process has ended. */
  onEnd(how: string): void
  /** Called with true when the last call has ended and no stream is open, and with false at the next call. */
  onIdle(isIdle: boolean): void
}

/**
 * A process and the calls that wait for it. Each request gets an id of the link, so that a response reaches only the caller that made the
 * request, whatever ids clients choose.
 */
export class Link implements Routing {
  readonly isModern: boolean
  readonly isShared: boolean
  readonly #options: LinkOptions
  readonly #process: ServerProcess
  readonly #open = new Map<number, Open>()
  readonly #owned = new Map<string, number>()
  readonly #streams = new Map<string, Reply>()
  readonly #requests: ServerRequests
  /** The server has answered a request with a result. */
  #hasAnswered = false
  #lastId = 0
  #drops = 0
  #isPaused = false
  #isEnded = false

  /** Throws if the process cannot be started at all. */
  constructor(options: LinkOptions) {
    this.#options = options
    const { spec, isModern, clock, log } = options
    this.isModern = isModern
    this.isShared = !spec.perSession
    this.#requests = new ServerRequests((bytes) => this.#answer(bytes), !this.isShared && !isModern)
    this.#process = new ServerProcess(
      spec,
      {
        line: (bytes) => this.#line(bytes),
        tooLong: () => this.#broken('a message that is too long'),
        ended: (how, lastError) => this.#ended(how, lastError),
      },
      { clock, log },
    )
  }

  get pid(): number | null {
    return this.#process.pid
  }

  get calls(): number {
    return this.#open.size
  }

  get isIdle(): boolean {
    return this.#open.size === 0 && this.#streams.size === 0
  }

  /** The bridge has begun to stop it. */
  get isStopping(): boolean {
    return this.#process.isStopping
  }

  /** Whether it accepts calls. */
  get isUsable(): boolean {
    return !this.#isEnded && !this.#process.isStopping
  }

  get streams(): Iterable<Reply> {
    return this.#streams.values()
  }

  /** The call to which messages without a reference belong: the latest one that can be sent messages. */
  get latest(): Reply | null {
    let found: Reply | null = null
    for (const { reply } of this.#open.values()) if (reply?.takesMessages) found = reply
    return found
  }

  callOf(id: unknown): Open | null {
    const number = typeof id === 'string' && /^\d{1,15}$/.test(id) ? Number(id) : id
    return typeof number === 'number' ? (this.#open.get(number) ?? null) : null
  }

  /** Sends a request. Fails its reply at once if there are too many. */
  request(message: Message, { owner, reply }: { readonly owner: string; readonly reply: Reply }): void {
    const { bytes, method } = message
    const id = literalAt(bytes, ID_PATH) ?? Buffer.from('null')
    const open = { owner, method, reply, id, token: literalAt(bytes, TOKEN_PATH) }
    const number = this.send(message, open)
    if (number !== null) reply.onAbandoned(() => this.#abandoned(number))
  }

  /** Sends a request for which something else than a reply waits. Returns its id; null if it was refused. */
  send({ bytes }: Message, open: Open): number | null {
    const owned = this.#owned.get(open.owner) ?? 0
    const isBusy = this.#open.size >= OPEN_MAX || owned >= OPEN_OF_OWNER_MAX || this.#isClogged
    if (isBusy || !this.isUsable) {
      fail(open, isBusy ? BUSY : STOPPING)
      return null
    }
    this.#lastId++
    const id = String(this.#lastId)
    const wasIdle = this.isIdle
    this.#open.set(this.#lastId, open)
    this.#owned.set(open.owner, owned + 1)
    if (wasIdle) this.#options.onIdle(false)
    this.#write(inOneLine(replaced(replaced(bytes, ID_PATH, id), TOKEN_PATH, id)))
    return this.#lastId
  }

  /** Sends a notification or a response of a client. Drops what refers to nothing that is open. */
  forward(message: Message, owner: string): void {
    if (this.#isClogged || !this.isUsable) return
    if (message.kind === 'response') this.#requests.answered(message)
    else if (message.method === 'notifications/cancelled') this.#cancel(message, owner)
    else this.#write(inOneLine(message.bytes))
  }

  /** Opens the standalone stream of a session, which replaces an earlier one. */
  listen(owner: string, reply: Reply): void {
    const wasIdle = this.isIdle
    this.#streams.get(owner)?.empty(200)
    this.#streams.set(owner, reply)
    if (wasIdle) this.#options.onIdle(false)
    reply.onAbandoned(() => this.unlisten(owner, reply))
    reply.open()
  }

  /** Ends the stream of a session; `reply`: only if it is this one. */
  unlisten(owner: string, reply?: Reply): void {
    const current = this.#streams.get(owner)
    if (current === undefined || (reply !== undefined && reply !== current)) return
    this.#streams.delete(owner)
    current.empty(200)
    this.#checkIdle()
  }

  /** Ends the calls and the stream of a session. */
  drop(owner: string): void {
    this.unlisten(owner)
    for (const [id, open] of this.#open) {
      if (open.owner !== owner) continue
      this.#close(id, open)
      fail(open, STOPPING)
    }
  }

  /** Logs a message that is not delivered. */
  dropped(what: string): void {
    this.#drops++
    const { log } = this.#options
    if (this.#drops <= LOGGED_DROPS_MAX) log.warn({ pid: this.pid, what }, 'a message of the server was dropped')
  }

  /** Passes a message on, and lets the process wait while its reader is slow. */
  deliver(reply: Reply, json: Uint8Array): void {
    reply.message(json)
    if (!reply.isFull) return
    if (this.isShared) {
      // Others must not wait for one slow reader.
      reply.cut()
      return
    }
    this.#pauseFor(reply)
  }

  async stop(): Promise<void> {
    await this.#process.stop()
  }

  get #isClogged(): boolean {
    return this.#process.backlog > BACKLOG_MAX_BYTES
  }

  #write(line: Uint8Array): void {
    this.#process.write(line)
  }

  /** A server that does not read gets no more answers. */
  #answer(line: Uint8Array): void {
    if (!this.#isClogged) this.#write(line)
  }

  #pauseFor(reply: Reply): void {
    if (this.#isPaused) return
    this.#isPaused = true
    this.#process.pause()
    reply.whenDrained(() => {
      this.#isPaused = false
      this.#process.resume()
    })
  }

  #line(bytes: Uint8Array): void {
    if (!isAttempt(bytes)) {
      if (bytes.length > 0) this.dropped('a line that is not a message')
      return
    }
    const message = readMessage(bytes)
    if (message === null) this.#broken('a line that is not a JSON-RPC message')
    else if (message.kind === 'response') this.#response(message)
    else if (message.kind === 'request') this.#requests.received(message, this)
    else routeNotification(message, this)
  }

  /** A broken message may have been the response to any open call, and none of them would end. */
  #broken(what: string): void {
    this.dropped(what)
    this.#failAll({ status: 502, reason: `it wrote ${what}` })
  }

  #response(message: Message): void {
    const { id } = message.value
    const open = typeof id === 'number' ? this.#open.get(id) : undefined
    if (typeof id !== 'number' || open === undefined) {
      if (typeof id !== 'number' || id > this.#lastId) this.dropped('a response that is not for an open request')
      return
    }
    this.#close(id, open)
    if (message.value.error === undefined) this.#hasAnswered = true
    if (open.done !== undefined) {
      open.done(message)
      return
    }
    const { reply } = open
    if (reply === null) return
    const json = replaced(replaced(message.bytes, ID_PATH, open.id), RESULT_SUBSCRIPTION_PATH, open.id)
    reply.finish(json, this.isModern ? statusOf(message) : 200)
    if (reply.isFull && !this.isShared) this.#pauseFor(reply)
    // The server does not know the revision: its client goes on with a handshake, for which it gets another process.
    if (open.method === 'server/discover' && !this.#hasAnswered) void this.stop()
  }

  #cancel(message: Message, owner: string): void {
    const wanted = literalAt(message.bytes, CANCELLED_PATH)
    if (wanted === null) return
    const text = textOf(wanted)
    for (const [id, open] of this.#open) {
      if (open.owner !== owner || textOf(open.id) !== text) continue
      this.#write(inOneLine(replaced(message.bytes, CANCELLED_PATH, String(id))))
      this.#options.clock.after(AFTER_CANCEL_MS, () => {
        if (this.#open.get(id) !== open) return
        this.#close(id, open)
        fail(open, { status: 502, reason: 'the call was cancelled' })
      })
      return
    }
  }

  /** The connection of a caller closed: the server need not go on. */
  #abandoned(id: number): void {
    const open = this.#open.get(id)
    if (open === undefined) return
    this.#close(id, open)
    // The handshake must not be cancelled.
    if (open.method === 'initialize' || this.#isClogged) return
    const params = { requestId: id, reason: 'the client has left' }
    this.#write(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })))
  }

  #close(id: number, { owner }: Open): void {
    this.#open.delete(id)
    const owned = (this.#owned.get(owner) ?? 1) - 1
    if (owned > 0) this.#owned.set(owner, owned)
    else this.#owned.delete(owner)
    this.#checkIdle()
  }

  #checkIdle(): void {
    if (this.isIdle && this.isUsable) this.#options.onIdle(true)
  }

  #failAll(failure: Failure): void {
    for (const [id, open] of this.#open) {
      this.#close(id, open)
      fail(open, failure)
    }
  }

  #ended(how: string, lastError: string | null): void {
    this.#isEnded = true
    // A server that never worked says why on stderr.
    const why = this.#hasAnswered || lastError === null ? '' : `; it wrote: ${lastError}`
    this.#failAll({ status: 502, reason: `the process ended: ${how}${why}` })
    for (const owner of [...this.#streams.keys()]) this.unlisten(owner)
    this.#options.onEnd(how)
  }
}

/** Errors that revision 2026-07-28 sends with HTTP status 400: of mirrored headers, capabilities and versions. */
const BAD_REQUESTS: ReadonlySet<unknown> = new Set([-32_020, -32_021, -32_022])

function statusOf({ value }: Message): number {
  return BAD_REQUESTS.has(valueAt(value, ['error', 'code'])) ? 400 : 200
}

const BUSY: Failure = { status: 503, reason: 'too many calls wait for it' }
const STOPPING: Failure = { status: 503, reason: 'it is being stopped' }

function fail({ reply, failed }: Open, failure: Failure): void {
  if (failed !== undefined) failed(failure)
  else reply?.fail(failure)
}

const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d])
const OPEN_OBJECT = 0x7b
const OPEN_ARRAY = 0x5b
const ASCII_MAX = 0x7e

/**
 * Returns whether a line could be meant as a message. Many servers print a greeting to stdout: no call waits for such a line, so it ends
 * none.
 */
function isAttempt(line: Uint8Array): boolean {
  const first = line.find((byte) => !SPACES.has(byte))
  return first !== undefined && (first === OPEN_OBJECT || first === OPEN_ARRAY || first > ASCII_MAX || first < 0x20)
}

/** Starts a process. Returns the reason if that fails at once. */
export function startLink(options: LinkOptions): Link | string {
  try {
    return new Link(options)
  } catch (error) {
    return reasonOf(error)
  }
}
