import { constants } from 'node:crypto'
import type { ServerOptions } from 'node:https'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'

/** Serve over TLS with a certificate that is followed when its files change. */
export interface TlsOptions {
  /** Path of the certificate chain in PEM, leaf first. */
  readonly certFile: string
  /** Path of its private key in PEM. */
  readonly keyFile: string
  /**
   * `requested`: a client may present a certificate, which the handshake shows it to hold and nobody has judged: a handler
   * reads it from the socket and must judge it itself.
   */
  readonly clientCertificates: 'none' | 'requested'
  /** How often the files are looked at, in milliseconds. */
  readonly reloadMs: number
}

/** What an HTTPS server is made with, besides certificate and key. */
export function tlsServerOptions({ clientCertificates }: TlsOptions, handshakeTimeout: number): ServerOptions {
  // Without `rejectUnauthorized: false` no certificate of a trust domain that the machine does not know would come in.
  return { requestCert: clientCertificates === 'requested', rejectUnauthorized: false, handshakeTimeout }
}

export interface TlsFollower {
  /** Hands each new pair to a server; the first one before it answers. Connections that are open keep theirs. */
  readonly use: (context: SecureContextOptions) => void
  readonly clock: Clock
  readonly log: Log
}

/**
 * Reads certificate and key and follows them. Rejects when they cannot be used at the start; later a pair that does not
 * fit, as in the moment between two writes, leaves the old one in place. Answers how to stop.
 */
export async function followTls(options: TlsOptions, { use, clock, log }: TlsFollower): Promise<() => void> {
  const { certFile, keyFile, reloadMs: everyMs } = options
  const texts = new Map<string, Buffer>()
  let started = false
  const apply = () => {
    const [cert, key] = [texts.get(certFile), texts.get(keyFile)]
    if (cert === undefined || key === undefined)
      throw new Error(`${cert === undefined ? certFile : keyFile} cannot be read`)
    const context = contextOf(cert, key)
    try {
      createSecureContext(context)
    } catch (error) {
      const why = error instanceof Error && 'code' in error ? error.code : 'unreadable'
      throw new Error(`${certFile} and ${keyFile} are no certificate with its key in PEM (${why})`)
    }
    use(context)
    if (started) log.info({ certFile }, 'new TLS certificate served')
  }
  const watches = [certFile, keyFile].map((path) =>
    watchFile({
      path,
      everyMs,
      clock,
      onBytes(bytes) {
        if (bytes === null) texts.delete(path)
        else texts.set(path, Buffer.from(bytes))
        if (started) apply()
      },
      onError: (error) => log.warn({ error: String(error) }, 'TLS certificate not read again, the old one is served'),
    }),
  )
  const stop = () => {
    for (const watch of watches) watch.stop()
  }
  try {
    for (const watch of watches) await watch.check()
    apply()
  } catch (error) {
    stop()
    throw error
  }
  started = true
  return stop
}

function contextOf(cert: Buffer, key: Buffer): SecureContextOptions {
  // A resumed session would keep the client's leaf without its chain, and outlive the certificate that it began with.
  return { cert, key, minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_TICKET }
}
