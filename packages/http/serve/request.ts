import { type IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** Receives a body in chunks. Ignores everything after `end` or `gone`. */
export interface BodyTaker {
  data(chunk: Uint8Array): void
  /** The body is complete. */
  end(): void
  /** The rest of the body will not arrive. */
  gone(): void
}

/** Heads with more or longer names are not cached. */
const MAX_KNOWN_NAMES = 32
const MAX_KNOWN_NAME_LENGTH = 64

/** Distinct header names of the last head on a connection. */
interface KnownNames {
  /** As they were sent. */
  readonly sent: readonly string[]
  /** In lower case. */
  readonly names: readonly string[]
  /** Object with each name, in this order: a copy only needs the values set. */
  readonly form: IncomingHttpHeaders
}

/** Requests on one connection mostly have the same header names. */
const knownNames = new WeakMap<Socket, KnownNames>()

/**
 * A request whose body can be passed directly from the parser, without the buffers and event loop turns of a stream. Headers equal those of Node;
 * names cached from the previous head are not processed again.
 */
export class Request extends IncomingMessage {
  #taker: BodyTaker | null = null
  /** Whether a consumer receives the body directly: the events of a stream would cost Node three ticks and as many objects. */
  #isRead = false

  static {
    // Node releases a request that has ended. Its types declare a property, which a class accessor cannot override.
    Object.defineProperty(Request.prototype, 'readableEnded', {
      get(this: Request): boolean {
        return this.#isRead || Reflect.get(IncomingMessage.prototype, 'readableEnded', this)
      },
    })
  }

  /** Sets `headers` before the first access: Node looks up each name character by character and adds it under a new string. */
  readHead(): void {
    const { socket, rawHeaders } = this
    const known = knownNames.get(socket)
    if (known !== undefined && hasNames(rawHeaders, known)) {
      this.headers = headersOf(rawHeaders, known)
      return
    }
    const learnt = namesOf(this)
    if (learnt !== null) knownNames.set(socket, learnt)
  }

  /** Passes the body to `taker` as it arrives. Returns false when some of it was already received, or when it is read as a stream. */
  hand(taker: BodyTaker): boolean {
    if (this.complete || this.readableLength > 0 || this.readableFlowing !== null) return false
    this.#taker = taker
    // Node discards a body when the response is complete and reading has not begun.
    this.read(0)
    return true
  }

  /** Called by the parser; null marks the end. */
  override push(chunk: Uint8Array | null): boolean {
    const taker = this.#taker
    if (taker === null) return super.push(chunk)
    if (chunk !== null) {
      taker.data(chunk)
      return true
    }
    this.#taker = null
    this.#isRead = true
    this.destroyed = true
    taker.end()
    return true
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#taker?.gone()
    super._destroy(error, done)
  }
}

function hasNames(raw: readonly string[], { sent }: KnownNames): boolean {
  if (raw.length !== sent.length * 2) return false
  for (let i = 0; i < sent.length; i++) if (raw[i * 2] !== sent[i]) return false
  return true
}

function headersOf(raw: readonly string[], { names, form }: KnownNames): IncomingHttpHeaders {
  const headers = { ...form }
  for (let i = 0; i < names.length; i++) headers[names[i] ?? ''] = raw[i * 2 + 1]
  return headers
}

/** Returns null where Node does more than set each value by name: it joins, drops or lists repeated headers, and truncates long lists. */
function namesOf({ headers, rawHeaders }: Request): KnownNames | null {
  const sent = rawHeaders.filter((_, at) => at % 2 === 0)
  if (sent.length > MAX_KNOWN_NAMES || Object.keys(headers).length !== sent.length) return null
  const names = sent.map((name) => name.toLowerCase())
  const plain = names.every(
    (name, i) => name.length <= MAX_KNOWN_NAME_LENGTH && headers[name] === rawHeaders[i * 2 + 1],
  )
  if (!plain) return null
  return { sent, names, form: Object.fromEntries(names.map((name) => [name, ''])) }
}
