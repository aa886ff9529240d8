import { connect, type Socket } from 'node:net'
import { clockMs } from './clock.ts'

/** A whole answer: its status and everything behind the head, chunk sizes included. */
export interface HttpResponse {
  readonly status: number
  readonly body: string
  /** When the first byte behind the head came, by `clockMs`. */
  readonly firstByteAt: number
}

const HEAD_END = Buffer.from('\r\n\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** Bytes of a POST with a JSON body, ready to be written again and again. */
export function postBytes(path: string, headers: Readonly<Record<string, string>>, body: string): Buffer {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const length = Buffer.byteLength(body)
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: ${length}\r\n${lines.join('')}\r\n${body}`,
  )
}

/** One keep-alive connection with one request under way: as little client as can be. Answers must fit in memory. */
export class Connection {
  readonly #socket: Socket
  #received: Buffer = Buffer.alloc(0)
  #done: ((answer: HttpResponse) => void) | null = null
  #failed: ((error: Error) => void) | null = null
  /** Offset behind the last byte, -1 while the head or the end of a chunked body is not known. */
  #end = -1
  #bodyAt = -1
  #firstByteAt = 0

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1').setNoDelay(true)
    this.#socket.on('data', (chunk: Buffer) => this.#take(chunk))
    this.#socket.on('error', (error) => this.#failed?.(error))
    this.#socket.on('close', () => this.#failed?.(new Error('the server closed the connection')))
  }

  send(request: Buffer): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      this.#done = resolve
      this.#failed = reject
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#failed = null
    this.#socket.destroy()
  }

  #take(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
    if (this.#bodyAt === -1) this.#readHead()
    if (this.#bodyAt === -1) return
    const all = this.#received
    if (this.#firstByteAt === 0 && all.length > this.#bodyAt) this.#firstByteAt = clockMs()
    const whole = this.#end === -1 ? all.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK) : all.length >= this.#end
    if (!whole) return
    const status = Number(all.toString('latin1', 9, 12))
    const answer = { status, body: all.toString('utf8', this.#bodyAt), firstByteAt: this.#firstByteAt }
    this.#firstByteAt = 0
    this.#received = Buffer.alloc(0)
    this.#bodyAt = -1
    this.#end = -1
    const done = this.#done
    this.#done = null
    done?.(answer)
  }

  #readHead(): void {
    const at = this.#received.indexOf(HEAD_END)
    if (at === -1) return
    this.#bodyAt = at + HEAD_END.length
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#received.toString('latin1', 0, at + 2))
    this.#end = length === null ? -1 : this.#bodyAt + Number(length[1])
  }
}
