import { constants, X509Certificate } from 'node:crypto'
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
  /**
   * Path of the authorities in PEM that client certificates must chain to, followed like the rest. The handshake ends well
   * either way: `socket.authorized` says whether the certificate does. Absent: nothing is said.
   */
  readonly clientCAFile?: string
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
  const { certFile, keyFile, clientCAFile, reloadMs: everyMs } = options
  const texts = new Map<string, Buffer>()
  let started = false
  const text = (path: string): Buffer => {
    const bytes = texts.get(path)
    if (bytes === undefined) throw new Error(`${path} cannot be read`)
    return bytes
  }
  const apply = () => {
    const pair = checked(text(certFile), text(keyFile), `${certFile} and ${keyFile} are no certificate with its key`)
    const ca = clientCAFile === undefined ? undefined : authorities(text(clientCAFile), clientCAFile)
    use(ca === undefined ? pair : { ...pair, ca })
    if (started) log.info({ certFile }, 'new TLS certificate served')
  }
  const paths = clientCAFile === undefined ? [certFile, keyFile] : [certFile, keyFile, clientCAFile]
  const watches = paths.map((path) =>
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

/** Throws `what` when certificate and key cannot be used together. */
function checked(cert: Buffer, key: Buffer, what: string): SecureContextOptions {
  // A resumed session would keep the client's leaf without its chain, and outlive the certificate that it began with.
  const context: SecureContextOptions = {
    cert,
    key,
    minVersion: 'TLSv1.2',
    secureOptions: constants.SSL_OP_NO_TICKET,
  }
  try {
    createSecureContext(context)
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? error.code : 'unreadable'
    throw new Error(`${what} in PEM (${why})`)
  }
  return context
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** The certificates of a bundle. One that holds none would trust nobody for ever: OpenSSL takes it without a word. */
function authorities(bundle: Buffer, path: string): string[] {
  const found = bundle.toString('latin1').match(CERTIFICATE) ?? []
  try {
    for (const pem of found) new X509Certificate(pem)
  } catch {
    throw new Error(`${path} holds what is no certificate in PEM`)
  }
  if (found.length === 0) throw new Error(`${path} holds no certificate in PEM`)
  return found
}
