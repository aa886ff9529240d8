import { connect, type Socket } from 'node:net'

/** An answer that came on a connection. */
export interface RawResponse {
  readonly status: number
  readonly head: string
}

/** Bytes received before the connection was closed; `lost` if the server left it open. */
export interface Exchanged {
  readonly answers: readonly RawResponse[]
  readonly lost: boolean
}

export interface Sending {
  readonly port: number
  readonly bytes: Buffer
  /** Number of writes, each in a separate turn of the event loop. */
  readonly pieces: number
  /** A response is expected: the sending side stays open until then, because Node drops a request whose client has half-closed. */
  readonly patient: boolean
  /** The connection is reset as soon as the bytes are out. */
  readonly reset: boolean
}

/** A connection on which nothing more can come must be closed after so many milliseconds, on the slowest machine. */
const CLOSED_MS = 60_000

const ANSWER = /HTTP\/1\.1 (\d{3}) ([\s\S]*?)\r\n\r\n/g

/** Sends bytes over a new connection and reads until the server closes it. */
export async function exchange({ port, bytes, pieces, patient, reset }: Sending): Promise<Exchanged> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
  const chunks: Buffer[] = []
  let lost = false
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  const late = setTimeout(() => {
    lost = true
    socket.destroy()
  }, CLOSED_MS)
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    socket.end()
  })
  // A server that has refused a head may reset what it was not going to read.
  socket.on('error', () => {})
  socket.once('end', () => socket.end())
  await send(socket, bytes, pieces)
  if (reset) socket.resetAndDestroy()
  else if (!patient) socket.end()
  await closed
  clearTimeout(late)
  return { answers: answersIn(Buffer.concat(chunks).toString('latin1')), lost }
}

async function send(socket: Socket, bytes: Buffer, pieces: number): Promise<void> {
  const size = Math.ceil(bytes.length / pieces)
  for (let at = 0; at < bytes.length && socket.writable; at += size) {
    socket.write(bytes.subarray(at, at + size))
    if (pieces > 1) await new Promise((resolve) => setImmediate(resolve))
  }
}

function answersIn(text: string): RawResponse[] {
  return [...text.matchAll(ANSWER)].map(([, status, head = '']) => ({ status: Number(status), head }))
}
