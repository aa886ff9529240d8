import { connect, isIP, type LookupFunction, type Socket, type SocketConnectOpts } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { rootsWith } from './roots.ts'
import type { TrustOptions } from './trust.ts'

/** Opens one connection. */
export interface OpenSocket {
  /** `read` gets the bytes of each read, once; they are its own. Throws when the address must not be connected to. */
  (read: (bytes: Buffer) => void, caller: string | undefined): Socket
  /** The event after which a request may be written: with TLS, the certificate has been accepted by then. */
  readonly ready: 'connect' | 'secureConnect'
}

export interface SocketOptions extends TrustOptions {
  /** Resolves and checks names, for a caller when one is known. Never asked for a host that is an address: `faultOfLiteral` is. */
  readonly lookup: (caller: string | undefined) => LookupFunction
  /** Why the address in the URL must not be connected to; null for a name and for what may be. */
  readonly faultOfLiteral: (hostname: string) => Error | null
}

/** Bytes of one read. */
const READ_BYTES = 64 * 1024
/** Milliseconds of silence after which the system asks whether the other side still lives. */
const PROBE_AFTER_MS = 60_000

/**
 * Every socket reads into this one buffer, and what was read is copied before anything else happens: a thousand waiting streams would
 * otherwise hold a thousand buffers, and each read would pass through a stream that nobody needs. Reading is one synchronous step on
 * the systems that plat runs on.
 */
const shared = Buffer.allocUnsafeSlow(READ_BYTES)

/** How connections to `origin` are opened. */
export function opener(origin: URL, options: SocketOptions): OpenSocket {
  const host = hostOf(origin)
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
      onread: { buffer: shared, callback: (size) => taken(size, read) },
    })
  }
  return Object.assign(openSocket, { ready: isTls ? 'secureConnect' : 'connect' } as const)
}

/**
 * One connection to `tcp://host:port` or `tls://host:port`, for what speaks no HTTP. It may be closed on one side alone. Throws when
 * the address must not be connected to.
 */
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

/** Sockets want IPv6 addresses without their brackets. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

function taken(size: number, read: (bytes: Buffer) => void): boolean {
  const bytes = Buffer.allocUnsafe(size)
  shared.copy(bytes, 0, 0, size)
  read(bytes)
  return true
}

/** The last session is offered to the next connection, which saves a round trip and a signature. */
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

/** Whom to believe, and as whom to come. */
function tlsOptions(host: string, { caPEM, clientCert, serverName }: TrustOptions) {
  const identity = clientCert === undefined ? {} : { cert: clientCert.certPEM, key: clientCert.keyPEM }
  const trust = caPEM === undefined ? {} : { ca: rootsWith(caPEM) }
  // An address is no name that could be asked for, but it is what the certificate must hold then.
  const name = serverName ?? (isIP(host) === 0 ? host : undefined)
  return { ...identity, ...trust, ...(name !== undefined && { servername: name }) }
}
