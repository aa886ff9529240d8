import type { Socket } from 'node:net'
import type { Clock } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { SinkConfig } from '../config.ts'
import { syslogFormatOf } from '../formats/format.ts'
import type { Material } from '../material.ts'
import type { Receiver } from './receiver.ts'

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
  const format = syslogFormatOf(config.format ?? 'rfc5424-json', config)
  return {
    write(record) {
      const message = format(record)
      return `${Buffer.byteLength(message)} ${message}`
    },
    async deliver(batch) {
      const socket = await dialer.connect(target, 'sink', { ...(await material.trust()), timeoutMs })
      const reason = await said(socket, batch.map(({ text }) => text).join(''), { clock, timeoutMs })
      return reason === null ? { kind: 'accepted' } : { kind: 'failed', reason }
    },
  }
}

/** Says it all and waits until the other side has heard it; a text says why that is not known. */
function said(socket: Socket, text: string, { clock, timeoutMs }: { clock: Clock; timeoutMs: number }) {
  return new Promise<string | null>((resolve) => {
    const end = (reason: string | null) => {
      cancel()
      socket.destroy()
      resolve(reason)
    }
    const cancel = clock.after(timeoutMs, () =>
      end(`the receiver has not closed the connection after a batch within ${timeoutMs} ms`),
    )
    let isSaid = false
    const finish = () => {
      isSaid = true
      socket.end()
    }
    socket.on('error', (error) => end(error.message))
    socket.on('close', () => end('the connection was closed before the batch was heard'))
    // Whoever closes first may have missed the rest.
    socket.on('end', () => end(isSaid ? null : 'the receiver closed the connection before the end of a batch'))
    // A receiver of syslog says nothing; what it says is not kept.
    socket.resume()
    socket.write(text, finish)
  })
}
