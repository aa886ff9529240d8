import type { Socket } from 'node:net'
import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import { placeOfSink, type SinkConfig } from '../config.ts'
import { syslogFormatOf } from '../formats/format.ts'
import type { Material } from '../material.ts'
import type { Receiver } from './receiver.ts'

/** Milliseconds until the event loop has read what had come before: between two timers it looks at every socket. */
const READ_MS = 1

export interface SyslogParts {
  readonly config: SinkConfig
  readonly dialer: Pick<Dialer, 'connect'>
  readonly material: Material
  readonly clock: Clock
}

/**
 * Syslog over TCP or TLS, each message with its length before it (RFC 6587, section 3.4.1; RFC 5425). Syslog has no acknowledgement,
 * so each batch has a connection of its own: it counts as delivered when the receiver has read to its end and closed it in turn.
 */
export function syslogReceiver({ config, dialer, material, clock }: SyslogParts): Receiver {
  const target = new URL(config.address)
  const timeoutMs = config.timeoutSeconds * 1000
  const jurisdiction = placeOfSink(config)
  const format = syslogFormatOf(config.format ?? 'rfc5424-json', config)
  return {
    write(record) {
      const message = format(record)
      return `${Buffer.byteLength(message)} ${message}`
    },
    async deliver(batch) {
      const began = clock.monotonic()
      const socket = await dialer.connect(target, 'sink', { ...(await material.trust()), jurisdiction, timeoutMs })
      const roundTripMs = clock.monotonic() - began
      const text = batch.map(({ text }) => text).join('')
      const reason = await new Talk({ socket, clock, timeoutMs, roundTripMs }).say(text)
      return reason === null ? { kind: 'accepted' } : { kind: 'failed', reason }
    },
  }
}

interface TalkParts {
  readonly socket: Socket
  readonly clock: Clock
  readonly timeoutMs: number
  /** No less than what a round trip takes. */
  readonly roundTripMs: number
}

/** One connection, from the first byte of a batch to the end of both sides. */
class Talk {
  readonly #parts: TalkParts
  readonly #over = Promise.withResolvers<string | null>()
  #isSaid = false

  constructor(parts: TalkParts) {
    this.#parts = parts
  }

  /** Says it all and waits until the other side has heard it; a text says why that is not known. */
  async say(text: string): Promise<string | null> {
    const { socket, clock, timeoutMs, roundTripMs } = this.#parts
    const over = (reason: string | null) => this.#over.resolve(reason)
    const cancel = clock.after(timeoutMs, () =>
      over(`the receiver has not closed the connection after a batch within ${timeoutMs} ms`),
    )
    socket.on('error', (error) => over(error.message))
    socket.on('close', () => over('the connection was closed before the batch was heard'))
    socket.on('end', () => over(this.#isSaid ? null : 'the receiver closed the connection before the end of a batch'))
    // A receiver of syslog says nothing; what it says is not kept.
    socket.resume()
    // Whoever closes without having read does so, or is told to, within a round trip: only after that does an end mean "heard". An end
    // that has come by then, and that a busy process has not read yet, is none.
    const wait = (ms: number, next: () => void) => () => void clock.after(ms, next)
    socket.write(
      text,
      wait(
        roundTripMs,
        wait(READ_MS, () => this.#end()),
      ),
    )
    const reason = await this.#over.promise
    cancel()
    socket.destroy()
    return reason
  }

  #end(): void {
    this.#isSaid = true
    this.#parts.socket.end()
  }
}
