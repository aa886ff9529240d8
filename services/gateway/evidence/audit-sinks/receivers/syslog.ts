import type { Socket } from 'node:net'
import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import { placeOfSink, type SinkConfig } from '../config.ts'
import { syslogFormatOf } from '../formats/format.ts'
import type { Material } from '../material.ts'
import type { Receiver } from './receiver.ts'

/** Time for the event loop to read data that has arrived: it polls sockets between two timers. */
const READ_MS = 1

export interface SyslogParts {
  readonly config: SinkConfig
  readonly dialer: Pick<Dialer, 'connect'>
  readonly material: Material
  readonly clock: Clock
}

/**
 * Syslog over TCP or TLS with length-prefixed messages (RFC 6587, section 3.4.1; RFC 5425). Syslog has no acknowledgement,
 * so each batch uses a separate connection: it is delivered when the receiver has read to the end and closed the connection.
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
  /** At least one round trip. */
  readonly roundTripMs: number
}

/** One connection for one batch. */
class Talk {
  readonly #parts: TalkParts
  readonly #over = Promise.withResolvers<string | null>()
  #isSaid = false

  constructor(parts: TalkParts) {
    this.#parts = parts
  }

  /** Sends the text and waits until the receiver has read it. Returns null, or the reason why that is unknown. */
  async say(text: string): Promise<string | null> {
    const { socket, clock, timeoutMs, roundTripMs } = this.#parts
    const over = (reason: string | null) => this.#over.resolve(reason)
    const cancel = clock.after(timeoutMs, () =>
      over(`the receiver has not closed the connection after a batch within ${timeoutMs} ms`),
    )
    socket.on('error', (error) => over(error.message))
    socket.on('close', () => over('the connection was closed before the batch was read'))
    socket.on('end', () => over(this.#isSaid ? null : 'the receiver closed the connection before the end of a batch'))
    // Syslog receivers send nothing; any data is discarded.
    socket.resume()
    // A receiver that closes or resets without reading does so within a round trip: only an end after that time means "read". An end
    // that arrived before, even if this busy process has not seen it yet, does not count.
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
