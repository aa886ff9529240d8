import { until } from '@plat/testkit/until'
import { WebSocket } from 'ws'

export interface TestViewer {
  readonly socket: WebSocket
  /** Everything that was received. */
  readonly received: () => Buffer
  /** Resolves with the close code and its reason. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  send(...messages: readonly Uint8Array[]): void
  /** Passes the handshake; resolves with the name of the screen. */
  greet(): Promise<string>
}

/** The response to a handshake that was refused. */
export interface RefusedViewer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

/** Opens a view as a program does. Rejects if the gateway closes the connection without a response. */
export function openViewer(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<TestViewer | RefusedViewer> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), { headers, perMessageDeflate: false })
  let received = Buffer.alloc(0)
  socket.on('message', (data: Buffer) => {
    received = Buffer.concat([received, data])
  })
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  )
  const send = (...messages: readonly Uint8Array[]) => {
    for (const message of messages) socket.send(message)
  }
  const atLeast = (bytes: number) => until(() => received.length >= bytes, `${bytes} bytes of the handshake`)
  const viewer: TestViewer = {
    ...{ socket, closed, send },
    received: () => received,
    async greet() {
      await atLeast(12)
      send(Buffer.from('RFB 003.008\n'))
      await atLeast(14)
      send(Buffer.from([1]))
      await atLeast(18)
      send(Buffer.from([0]))
      await atLeast(18 + 24)
      const length = received.readUInt32BE(38)
      await atLeast(42 + length)
      return received.subarray(42, 42 + length).toString()
    },
  }
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(viewer))
    socket.on('error', reject)
    socket.once('unexpected-response', (_request, response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString()) }),
      )
    })
  })
}
