import { type IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'

/** Gets a body piece by piece. After `end` and `gone` nothing counts that still comes. */
export interface BodyTaker {
  data(chunk: Uint8Array): void
  /** The body is complete. */
  end(): void
  /** The rest of it will not come. */
  gone(): void
}

/** Heads with more names, or longer ones, are not remembered. */
const MAX_KNOWN_NAMES = 32
const MAX_KNOWN_NAME_LENGTH = 64

/** The names that a connection's last head had, each once. */
interface KnownNames {
  /** As they were sent. */
  readonly sent: readonly string[]
  /** In lower case. */
  readonly names: readonly string[]
  /** Has each name, in their order: a copy of it needs values alone. */
  readonly form: IncomingHttpHeaders
}

/** Requests of one connection mostly have the same names. */
const knownNames = new WeakMap<Socket, KnownNames>()

/**
 * A request whose body can be had straight from the parser: as a stream it would pass buffers and turns of the loop that nobody needs.
 * Its headers are what Node makes of them, but names that are known again are not read again.
 */
export class Request extends IncomingMessage {
  #taker: BodyTaker | null = null
  /** A taker has all of the body: nobody waits for events of a stream, which would take Node three ticks and as many objects. */
  #taken = false

  static {
    // Node lets go of a request that has ended. Its types have a member here, which no accessor of a class may override.
    Object.defineProperty(Request.prototype, 'readableEnded', {
      get(this: Request): boolean {
        return this.#taken || Reflect.get(IncomingMessage.prototype, 'readableEnded', this)
      },
    })
  }

  /** Makes `headers`, before anybody asks for them: Node looks each name up letter by letter, and adds it by a new text. */
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

  /** Hands the body to `taker` as it comes. False when some of it is here already, or somebody reads it as a stream. */
  hand(taker: BodyTaker): boolean {
    if (this.complete || this.readableLength > 0 || this.readableFlowing !== null) return false
    this.#taker = taker
    // Node throws a body away when the answer has left and nobody has begun to read.
    this.read(0)
    return true
  }

  /** Called by the parser; null is the end. */
  override push(chunk: Uint8Array | null): boolean {
    const taker = this.#taker
    if (taker === null) return super.push(chunk)
    if (chunk !== null) {
      taker.data(chunk)
      return true
    }
    this.#taker = null
    this.#taken = true
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

/** Null where Node does more than to set each value by its name: it joins, drops or lists what comes twice, and cuts what is too long. */
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
