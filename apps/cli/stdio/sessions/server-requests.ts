import type { Reply } from '../http/reply.ts'
import { ID_PATH, inOneLine, literalAt, type Message, textOf } from '../message.ts'
import type { Routing } from './routing.ts'

/** Requests of one process that wait for a client. */
const WAITING_MAX = 64
/** Longest id of such a request, in bytes. */
const ID_MAX_BYTES = 1024

const METHOD_NOT_FOUND = -32601
const INTERNAL_ERROR = -32603

/**
 * Requests of a server to its client, such as sampling and elicitation. Only a process of a single session can have them: nothing in such
 * a request says for which of several sessions it is.
 */
export class ServerRequests {
  readonly #write: (line: Uint8Array) => void
  readonly #hasClient: boolean
  /** Ids as the server wrote them. */
  readonly #waiting = new Set<string>()

  constructor(write: (line: Uint8Array) => void, hasClient: boolean) {
    this.#write = write
    this.#hasClient = hasClient
  }

  /** Passes a request to the client, or answers it. */
  received({ method, bytes }: Message, routing: Pick<Routing, 'latest' | 'streams' | 'deliver'>): void {
    const id = literalAt(bytes, ID_PATH)
    if (id === null || id.length > ID_MAX_BYTES) return
    if (method === 'ping') {
      this.#answer(id, '"result":{}')
      return
    }
    const [stream] = routing.streams
    const reply: Reply | null = routing.latest ?? stream ?? null
    const error = this.#errorFor(method, reply)
    if (error !== null || reply === null) {
      this.#answer(id, `"error":${JSON.stringify(error)}`)
      return
    }
    this.#waiting.add(textOf(id))
    routing.deliver(reply, bytes)
  }

  #errorFor(method: string, reply: Reply | null): object | null {
    if (!this.#hasClient) return { code: METHOD_NOT_FOUND, message: `${method} is not offered to this server` }
    if (reply === null) return { code: INTERNAL_ERROR, message: 'no client is connected' }
    return this.#waiting.size < WAITING_MAX ? null : { code: INTERNAL_ERROR, message: 'too many requests wait' }
  }

  /** Passes the response of a client to the server, once for each request. */
  answered({ bytes }: Message): void {
    const id = literalAt(bytes, ID_PATH)
    if (id !== null && this.#waiting.delete(textOf(id))) this.#write(inOneLine(bytes))
  }

  #answer(id: Uint8Array, outcome: string): void {
    this.#write(Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":'), id, Buffer.from(`,${outcome}}`)]))
  }
}
