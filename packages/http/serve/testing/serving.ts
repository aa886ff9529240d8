import { connect, type Socket } from 'node:net'
import { systemClock, systemIds } from '@plat/core'
import { silentLog } from '@plat/process'
import { type Listener, type ListenOptions, listen } from '../listen.ts'

/** Runs `use` with a listener on a free port. */
export async function serving(
  options: Partial<ListenOptions>,
  use: (listener: Listener) => Promise<void>,
): Promise<void> {
  const clock = systemClock
  const listener = await listen({ address: '127.0.0.1:0', clock, ids: systemIds(clock), log: silentLog, ...options })
  try {
    await use(listener)
  } finally {
    await listener.close()
  }
}

/** Opens a connection for raw bytes. `received` resolves with everything received until the server closes. */
export function dial(port: number): { socket: Socket; received: Promise<string> } {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  return { socket, received: new Promise((resolve) => socket.once('close', () => resolve(answer))) }
}

/** Sends raw bytes; resolves with everything received until the server closes. */
export function raw(port: number, text: string): Promise<string> {
  const { socket, received } = dial(port)
  socket.write(Buffer.from(text, 'latin1'))
  return received
}
