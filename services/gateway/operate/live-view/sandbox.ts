import type { Duplex } from 'node:stream'
import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import { createWebSocketStream, WebSocket } from 'ws'
import { withPongs } from './pongs.ts'

/** Time limit for the connection to a sandbox, in milliseconds. */
const CONNECT_MS = 10_000
/** Longest message of a sandbox, in bytes; bridges send far shorter ones. */
const MAX_MESSAGE_BYTES = 1024 * 1024
const MAX_FRAGMENTS = 1024
/** Bytes that are read ahead of a slow viewer. */
const BUFFER_BYTES = 64 * 1024
/** Waiting time for the close of the other side, in milliseconds. */
const CLOSE_MS = 1_000

/** The published types lack two of these. */
const CLIENT_OPTIONS = {
  perMessageDeflate: false,
  maxPayload: MAX_MESSAGE_BYTES,
  maxFragments: MAX_FRAGMENTS,
  autoPong: false,
  closeTimeout: CLOSE_MS,
  followRedirects: false,
}

export interface SandboxOptions {
  /** Its `ws:` or `wss:` address. */
  readonly url: URL
  /** Whose share of name look-ups is used. */
  readonly caller: string
  readonly dialer: Pick<Dialer, 'connect'>
  readonly clock: Clock
}

/** Opens the WebSocket of a sandbox, over a connection of the dialer; redirects are not followed. Rejects if it does not open in time. */
export async function openSandbox({ url, caller, dialer, clock }: SandboxOptions): Promise<Duplex> {
  const isTls = url.protocol === 'wss:'
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port)
  const target = new URL(`${isTls ? 'tls' : 'tcp'}://${url.hostname}:${port}`)
  const socket = await dialer.connect(target, 'sandbox', { timeoutMs: CONNECT_MS, caller })
  // The connection is open, over TLS as well: nothing else is dialled.
  const address = new URL(url)
  address.protocol = 'ws:'
  const headers = { host: url.host }
  const webSocket = new WebSocket(address, { ...CLIENT_OPTIONS, headers, createConnection: () => socket })
  withPongs(webSocket)
  const stream = createWebSocketStream(webSocket, { highWaterMark: BUFFER_BYTES })
  const cancel = clock.after(CONNECT_MS, () => stream.destroy(new Error('the WebSocket does not open')))
  try {
    await new Promise<void>((resolve, reject) => {
      webSocket.once('open', resolve)
      stream.on('error', reject)
      stream.once('close', () => reject(new Error('closed before it opened')))
    })
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    cancel()
  }
  return stream
}
