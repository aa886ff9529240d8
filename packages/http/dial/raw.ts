import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Clock } from '@plat/core'
import { MalformedResponseError } from '../client/head.ts'
import { TimeoutError } from './errors.ts'
import { openRaw, type SocketOptions } from './socket.ts'

/** The open connections that speak no HTTP. */
export class RawSockets {
  readonly #clock: Clock
  readonly #open = new Set<Socket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves when the socket may be written to. */
  open(target: URL, options: SocketOptions & { readonly caller?: string }, timeoutMs: number): Promise<Socket> {
    const socket = openRaw(target, options)
    this.#open.add(socket)
    socket.once('close', () => this.#open.delete(socket))
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.after(timeoutMs, () =>
        socket.destroy(new TimeoutError(`No connection within ${timeoutMs} ms.`)),
      )
      // It stays: an error that nobody hears would end the process. Its owner learns of it by the socket's end.
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

  /** Ends all of them at once. */
  cut(): void {
    for (const socket of this.#open) socket.destroy()
  }
}
