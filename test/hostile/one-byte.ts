import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Server } from '../../bench/harness/proc.ts'

const CONNECTIONS = 80
/** Chunks of each connection: an absurd number, and one that is below what is refused. */
const ABSURD = 100_000
const UNFINISHED = 8_000
const ONE_BYTE = Buffer.from('1\r\na\r\n')
const LOOK_EVERY_MS = 20
/** How long memory is watched after everything was sent, in milliseconds. */
const WATCH_MS = 1_000

/** Effect of 80 connections without a token on a broker. */
export interface OneByteResult {
  readonly idleBytes: number
  readonly mostBytes: number
  /** Statuses of those that sent an absurd number of chunks. */
  readonly refusals: readonly string[]
}

/** Sends bodies in one-byte chunks: first more than any body may have, then as many as it may have, which stay unfinished. */
export async function sendOneByteChunks(broker: Server): Promise<OneByteResult> {
  // Memory loaded by the first requests does not count for later ones.
  for (let n = 0; n < CONNECTIONS; n++) await (await fetch(`${broker.url}/healthz`)).text()
  const idleBytes = broker.rssBytes()
  let mostBytes = idleBytes
  const look = setInterval(() => {
    mostBytes = Math.max(mostBytes, broker.rssBytes())
  }, LOOK_EVERY_MS)
  const all = (chunks: number) => Array.from({ length: CONNECTIONS }, () => begin(broker.port, chunks))
  const absurd = all(ABSURD)
  const refusals = await Promise.all(absurd.map(({ status }) => status))
  const unfinished = all(UNFINISHED)
  await Promise.all(unfinished.map(({ sent }) => sent))
  await sleep(WATCH_MS)
  for (const { socket } of [...absurd, ...unfinished]) socket.destroy()
  clearInterval(look)
  return { idleBytes, mostBytes, refusals }
}

function begin(port: number, chunks: number) {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(
    'POST /v1/exchange HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  const sent = new Promise<void>((resolve) =>
    socket.write(Buffer.alloc(ONE_BYTE.length * chunks, ONE_BYTE), () => resolve()),
  )
  return { socket, sent, status: statusOf(socket) }
}

async function statusOf(socket: Socket): Promise<string> {
  const response = await Promise.race([once(socket, 'data').then(String), once(socket, 'close').then(() => '')])
  return /^HTTP\/1\.1 (\d+)/.exec(response)?.[1] ?? 'none'
}
