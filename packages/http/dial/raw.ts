import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Clock } from '@plat/core'
import { MalformedResponseError } from '../client/head.ts'
import { TimeoutError } from './errors.ts'
import { openRaw, type SocketOptions } from './socket.ts'

/** Open connections that do not carry HTTP. */
export class RawSockets {
  readonly #clock: Clock
  readonly #open = new Set<Socket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when the socket is writable. */
  open(target: URL, options: SocketOptions & { readonly caller?: string }, timeoutMs: number): Promise<Socket> {
    const socket = openRaw(target, options)
    this.#open.add(socket)
    socket.once('close', () => this.#open.delete(socket))
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.after(timeoutMs, () =>
        socket.destroy(new TimeoutError(`No connection within ${timeoutMs} ms.`)),
      )
      // Never removed: an error without a listener would end the process. The owner notices the end of the socket.
      socket.on('error', reject)
      socket.once('close', () => {
        cancel()
        reject(new MalformedResponseError('the connection was closed before it was ready'))
      })
      socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
        cancel()
        resolve(socket)
      })
    })
  }

  /** Destroys all of them. */
  cut(): void {
    for (const socket of this.#open) socket.destroy()
  }
}
