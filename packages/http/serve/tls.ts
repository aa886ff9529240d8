import { constants, X509Certificate } from 'node:crypto'
import type { ServerOptions } from 'node:https'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { watchFile } from '@plat/config'
import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'

/** TLS with a certificate that is reloaded when its files change. */
export interface TlsOptions {
  /** Path of the certificate chain in PEM, leaf first. */
  readonly certFile: string
  /** Path of its private key in PEM. */
  readonly keyFile: string
  /**
   * `requested`: the client may present a certificate. The handshake proves possession of its key only; the handler must verify the certificate
   * itself.
   */
  readonly clientCertificates: 'none' | 'requested'
  /**
   * Path of the PEM authorities for client certificates, reloaded like the certificate. The handshake succeeds in any case; `socket.authorized`
   * holds the result. Absent: no verification.
   */
  readonly clientCAFile?: string
  /** How often the files are checked, in milliseconds. */
  readonly reloadMs: number
}

/** Options of an HTTPS server except certificate and key. */
export function tlsServerOptions({ clientCertificates }: TlsOptions, handshakeTimeout: number): ServerOptions {
  // Without `rejectUnauthorized: false` a certificate of an unknown trust domain would not reach the handler.
  return { requestCert: clientCertificates === 'requested', rejectUnauthorized: false, handshakeTimeout }
}

export interface TlsFollower {
  /** Receives each new certificate and key; the first pair before `followTls` resolves. Open connections keep theirs. */
  readonly use: (context: SecureContextOptions) => void
  readonly clock: Clock
  readonly log: Log
}

/**
 * Loads certificate and key and reloads them on change. Rejects when the first pair is unusable; a later unusable pair, as between two writes,
 * leaves the previous one in place. Returns a function that stops the reloading.
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
    const pair = checked(text(certFile), text(keyFile), `${certFile} and ${keyFile} are not a certificate with its key`)
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
      onError: (error) =>
        log.warn({ error: String(error) }, 'TLS certificate could not be reloaded, the old one is still served'),
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

/** Throws an error with the message `what` when certificate and key do not fit together. */
function checked(cert: Buffer, key: Buffer, what: string): SecureContextOptions {
  // A resumed session would omit the client's chain, and outlive the certificate that it was started with.
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

/** Returns the certificates of a bundle. Throws on an empty bundle, which OpenSSL would accept silently and which would trust no client. */
function authorities(bundle: Buffer, path: string): string[] {
  const found = bundle.toString('latin1').match(CERTIFICATE) ?? []
  try {
    for (const pem of found) new X509Certificate(pem)
  } catch {
    throw new Error(`${path} holds what is not a certificate in PEM`)
  }
  if (found.length === 0) throw new Error(`${path} holds no certificate in PEM`)
  return found
}
