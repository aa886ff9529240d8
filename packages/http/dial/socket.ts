import { connect, isIP, type LookupFunction, type Socket, type SocketConnectOpts } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { rootsWith } from './roots.ts'
import type { TrustOptions } from './trust.ts'

/** Opens one connection. */
export interface OpenSocket {
  /** `read` receives the bytes of each read and owns them. Throws when the address is forbidden. */
  (read: (bytes: Buffer) => void, caller: string | undefined): Socket
  /** Event after which a request may be written; with TLS the certificate is verified by then. */
  readonly ready: 'connect' | 'secureConnect'
}

export interface SocketOptions extends TrustOptions {
  /** Resolves and checks names, for a caller when one is known. Never called for a host that is an address: `faultOfLiteral` is. */
  readonly lookup: (caller: string | undefined) => LookupFunction
  /** Returns why the literal address in the URL is forbidden; null for a name and for an allowed address. */
  readonly faultOfLiteral: (hostname: string) => Error | null
}

const READ_BYTES = 64 * 1024
/** Idle time before TCP keep-alive probes, in milliseconds. */
const PROBE_AFTER_MS = 60_000

/**
 * All sockets read into this one buffer, and each read is copied at once: a thousand waiting streams would otherwise hold a thousand buffers, and
 * each read would pass through a stream. Reading is one synchronous step on the supported systems.
 */
const shared = Buffer.allocUnsafeSlow(READ_BYTES)

/** Returns a function that opens connections to `origin`. */
export function opener(origin: URL, options: SocketOptions): OpenSocket {
  const host = hostOf(origin)
  const { socketPath } = options
  if (socketPath !== undefined) return localOpener(socketPath)
  const isTls = origin.protocol === 'https:'
  const port = Number(origin.port || (isTls ? 443 : 80))
  const open = isTls ? tlsOpener(host, options) : connect
  const openSocket = (read: (bytes: Buffer) => void, caller: string | undefined): Socket => {
    const fault = options.faultOfLiteral(host)
    if (fault !== null) throw fault
    return open({
      host,
      port,
      lookup: options.lookup(caller),
      autoSelectFamily: true,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
      onread: { buffer: shared, callback: (size) => sliced(size, read) },
    })
  }
  return Object.assign(openSocket, { ready: isTls ? 'secureConnect' : 'connect' } as const)
}

/** There is no address to check: the path comes from the program itself. */
function localOpener(path: string): OpenSocket {
  const open = (read: (bytes: Buffer) => void): Socket =>
    connect({ path, onread: { buffer: shared, callback: (size) => sliced(size, read) } })
  return Object.assign(open, { ready: 'connect' } as const)
}

/** Opens a connection to `tcp://host:port` or `tls://host:port`. Each side can be closed separately. Throws when the address is forbidden. */
export function openRaw(target: URL, options: SocketOptions & { readonly caller?: string }): Socket {
  const host = hostOf(target)
  const fault = options.faultOfLiteral(host)
  if (fault !== null) throw fault
  const how = {
    host,
    port: Number(target.port),
    lookup: options.lookup(options.caller),
    autoSelectFamily: true,
    allowHalfOpen: true,
    keepAlive: true,
    keepAliveInitialDelay: PROBE_AFTER_MS,
  }
  return target.protocol === 'tls:' ? connectTls({ ...how, ...tlsOptions(host, options) }) : connect(how)
}

/** Sockets expect IPv6 addresses without brackets. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

function sliced(size: number, read: (bytes: Buffer) => void): boolean {
  const bytes = Buffer.allocUnsafe(size)
  shared.copy(bytes, 0, 0, size)
  read(bytes)
  return true
}

/** Offers the last TLS session to the next connection, which saves a round trip and a signature. */
function tlsOpener(host: string, options: SocketOptions): (how: SocketConnectOpts) => Socket {
  const tls = tlsOptions(host, options)
  let session: Buffer | undefined
  return (how) => {
    const resumed = session === undefined ? {} : { session }
    const socket = connectTls({ ...how, ...tls, ...resumed, ALPNProtocols: ['http/1.1'] })
    socket.on('session', (ticket) => {
      session = ticket
    })
    return socket
  }
}

/** Trust roots, client certificate and server name. */
function tlsOptions(host: string, { caPEM, clientCert, serverName }: TrustOptions) {
  const identity = clientCert === undefined ? {} : { cert: clientCert.certPEM, key: clientCert.keyPEM }
  const trust = caPEM === undefined ? {} : { ca: rootsWith(caPEM) }
  // SNI carries names only, but the certificate must contain the address.
  const name = serverName ?? (isIP(host) === 0 ? host : undefined)
  return { ...identity, ...trust, ...(name !== undefined && { servername: name }) }
}
