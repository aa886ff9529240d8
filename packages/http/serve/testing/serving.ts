import { connect, type Socket } from 'node:net'
import { systemClock, systemIds } from '@plat/core'
import { silentLog } from '@plat/process'
import { type Listener, type ListenOptions, listen } from '../listen.ts'

/** A listener on a free port for as long as `use` takes. */
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

/** A connection on which bytes go out as they are. `told` answers everything that came until the server closed it. */
export function dial(port: number): { socket: Socket; told: Promise<string> } {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  return { socket, told: new Promise((resolve) => socket.once('close', () => resolve(answer))) }
}

/** Sends bytes as they are and answers everything that comes until the server closes. */
export function raw(port: number, text: string): Promise<string> {
  const { socket, told } = dial(port)
  socket.write(Buffer.from(text, 'latin1'))
  return told
}
