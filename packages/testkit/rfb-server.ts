import { createServer, type IncomingHttpHeaders } from 'node:http'
import { type WebSocket, WebSocketServer } from 'ws'
import { closed, listening } from './local.ts'

/** A message that the server read, after the handshake. */
export interface RfbMessage {
  readonly type: number
  readonly bytes: Buffer
}

export interface RfbServerOptions {
  /** Default `003.008`. */
  readonly version?: string
  /** Offered security types, of which 3.3 sends the first; default none (1). */
  readonly security?: readonly number[]
  readonly name?: string
  /** Sent instead of the handshake. */
  readonly hello?: Uint8Array
  /** Reads nothing after the handshake. */
  readonly stalls?: boolean
  /** Answers of the HTTP server beside the WebSocket, by path. */
  readonly pages?: Readonly<
    Record<string, { readonly status?: number; readonly headers?: object; readonly body: string }>
  >
}

/** A remote view (RFC 6143) of a screen of 4 × 4 pixels over a WebSocket at any path, as a bridge serves it. */
export interface RfbServer {
  /** `http://127.0.0.1:<port>` */
  readonly url: string
  /** Paths of the WebSockets and their headers, in order. */
  readonly opened: readonly { readonly path: string; readonly headers: IncomingHttpHeaders }[]
  readonly requests: readonly { readonly path: string; readonly headers: IncomingHttpHeaders }[]
  /** Messages of all viewers. A message of unknown length ends the view with a problem. */
  readonly messages: readonly RfbMessage[]
  readonly problems: readonly string[]
  /** The value of the shared flag of each viewer. */
  readonly shared: readonly number[]
  /** Viewers that are connected. */
  readonly viewers: number
  /** Sends bytes to all viewers; resolves when they are written out. */
  send(bytes: Uint8Array): Promise<void>
  /** Closes the connections of all viewers. */
  drop(): void
  close(): Promise<void>
}

const WIDTH = 4
const HEIGHT = 4
/** 32 bits per pixel, depth 24, little-endian, true colour. */
const PIXEL_FORMAT = Buffer.from('20180001 00ff00ff 00ff1008 00000000'.replaceAll(' ', ''), 'hex')

/** Starts a server on a free port. */
export async function startRfbServer(options: RfbServerOptions = {}): Promise<RfbServer> {
  const state = new State(options)
  const http = createServer(({ url = '', headers }, response) => {
    state.requests.push({ path: url, headers })
    const page = options.pages?.[url]
    response.writeHead(page?.status ?? (page === undefined ? 404 : 200), { ...page?.headers })
    response.end(page?.body ?? 'not found')
  })
  const sockets = new WebSocketServer({ server: http, perMessageDeflate: false })
  sockets.on('connection', (socket, { url = '', headers }) => {
    state.opened.push({ path: url, headers })
    state.sockets.add(socket)
    socket.once('close', () => state.sockets.delete(socket))
    socket.on('error', () => {})
    new Connection(socket, state).greet()
  })
  const port = await listening(http)
  return {
    url: `http://127.0.0.1:${port}`,
    ...{ opened: state.opened, requests: state.requests, messages: state.messages },
    ...{ problems: state.problems, shared: state.shared },
    get viewers() {
      return state.sockets.size
    },
    async send(bytes) {
      const sending = [...state.sockets].map((socket) => new Promise<void>((done) => socket.send(bytes, () => done())))
      await Promise.all(sending)
    },
    drop() {
      for (const socket of state.sockets) socket.terminate()
    },
    async close() {
      for (const socket of state.sockets) socket.terminate()
      sockets.close()
      await closed(http)
    },
  }
}

class State {
  readonly options: RfbServerOptions
  readonly opened: { path: string; headers: IncomingHttpHeaders }[] = []
  readonly requests: { path: string; headers: IncomingHttpHeaders }[] = []
  readonly messages: RfbMessage[] = []
  readonly problems: string[] = []
  readonly shared: number[] = []
  readonly sockets = new Set<WebSocket>()

  constructor(options: RfbServerOptions) {
    this.options = options
  }
}

/** Reads everything that has arrived at once: a test sends little. */
class Connection {
  readonly #socket: WebSocket
  readonly #state: State
  #unread = Buffer.alloc(0)
  #step: () => boolean = () => false

  constructor(socket: WebSocket, state: State) {
    this.#socket = socket
    this.#state = state
    socket.on('message', (data: Buffer) => {
      this.#unread = Buffer.concat([this.#unread, data])
      while (this.#step());
    })
  }

  greet(): void {
    const { version = '003.008', hello } = this.#state.options
    this.#socket.send(hello ?? `RFB ${version}\n`, { binary: true })
    if (hello !== undefined) return
    this.#step = () => this.#readVersion()
  }

  #take(bytes: number): Buffer | null {
    if (this.#unread.length < bytes) return null
    const taken = this.#unread.subarray(0, bytes)
    this.#unread = this.#unread.subarray(bytes)
    return taken
  }

  #readVersion(): boolean {
    const version = this.#take(12)?.toString('latin1')
    if (version === undefined) return false
    const { security = [1] } = this.#state.options
    const minor = Number(version.slice(8, 11))
    if (minor === 3) this.#socket.send(Buffer.from([0, 0, 0, security[0] ?? 0]))
    else this.#socket.send(Buffer.from([security.length, ...security]))
    this.#step = minor === 3 ? () => this.#readShared() : () => this.#readSecurity(minor)
    return true
  }

  #readSecurity(minor: number): boolean {
    if (this.#take(1) === null) return false
    if (minor === 8) this.#socket.send(Buffer.alloc(4))
    this.#step = () => this.#readShared()
    return true
  }

  #readShared(): boolean {
    const shared = this.#take(1)
    if (shared === null) return false
    this.#state.shared.push(shared.readUInt8(0))
    const name = Buffer.from(this.#state.options.name ?? 'screen')
    const [size, length] = [Buffer.alloc(4), Buffer.alloc(4)]
    size.writeUInt16BE(WIDTH, 0)
    size.writeUInt16BE(HEIGHT, 2)
    length.writeUInt32BE(name.length)
    this.#socket.send(Buffer.concat([size, PIXEL_FORMAT, length, name]))
    this.#step = () => this.#readMessage()
    if (this.#state.options.stalls === true) this.#socket.pause()
    return true
  }

  #readMessage(): boolean {
    const length = lengthOf(this.#unread)
    if (length === 'unknown') {
      this.#state.problems.push(`message type ${this.#unread[0]}`)
      this.#socket.terminate()
      this.#step = () => false
      return false
    }
    const bytes = length === null ? null : this.#take(length)
    if (bytes === null) return false
    const type = bytes.readUInt8(0)
    this.#state.messages.push({ type, bytes: Buffer.from(bytes) })
    // The whole screen, for every request that is not for changes only.
    if (type === 3 && bytes[1] === 0) this.#socket.send(update())
    return true
  }
}

/** Length of the message that begins here (RFC 6143, section 7.5); null: more is needed. */
function lengthOf(bytes: Buffer): number | null | 'unknown' {
  const [type] = bytes
  switch (type) {
    case undefined:
      return null
    case 0:
      return 20
    case 2:
      return bytes.length < 4 ? null : 4 + bytes.readUInt16BE(2) * 4
    case 3:
      return 10
    case 4:
      return 8
    case 5:
      return 6
    case 6:
      return bytes.length < 8 ? null : 8 + bytes.readUInt32BE(4)
    case 255:
      return 12
    default:
      return 'unknown'
  }
}

/** A FramebufferUpdate with one raw rectangle: the whole screen, in grey. */
function update(): Buffer {
  const head = Buffer.alloc(16)
  head.writeUInt16BE(1, 2)
  head.writeUInt16BE(WIDTH, 8)
  head.writeUInt16BE(HEIGHT, 10)
  return Buffer.concat([head, Buffer.alloc(WIDTH * HEIGHT * 4, 0x80)])
}
