import { chmod, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import type { ListenOptions } from 'node:net'
import type { Clock, Ids, PoolObserver } from '@plat/core'
import type { Log } from '@plat/process'
import type { TlsAccess } from './http/access.ts'
import { createFront } from './http/front.ts'
import type { BridgeEvent, BridgeStatus, ServerSpec } from './protocol.ts'
import { Processes } from './sessions/processes.ts'
import { StdioServer } from './sessions/server.ts'

/** Where the bridge listens: on a Unix socket whose folder must be closed to other users, or on a TCP port with TLS and a token. */
export type BridgeListener =
  | { readonly socket: string }
  | { readonly host: string; readonly port: number; readonly access: TlsAccess }

export interface BridgeOptions {
  readonly listener: BridgeListener
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  report(event: BridgeEvent): void
}

/** A running bridge. */
export interface Bridge {
  /** Port of a TCP listener; 0 for a socket. */
  readonly port: number
  /** Replaces the servers. Those that stay the same go on undisturbed. */
  serve(specs: readonly ServerSpec[]): void
  status(): BridgeStatus
  /** Stops every process and the listener. */
  stop(): Promise<void>
}

const SOCKET_MODE = 0o600

/** Starts the bridge. Rejects if it cannot listen. */
export async function startBridge({ listener, clock, ids, log, report }: BridgeOptions): Promise<Bridge> {
  const servers = new Map<string, StdioServer>()
  const pools = { of: (pool: string) => logRefusals(log, pool) }
  const parts = { clock, ids, log, report, processes: new Processes(pools.of('stdio_processes')) }
  const removed = new Set<Promise<void>>()
  const status = () => ({ servers: [...servers.values()].map((server) => server.status) })
  const access = 'access' in listener ? listener.access : null
  const front = createFront({ log, serverOf: (key) => servers.get(key) ?? null, status, access })
  if ('socket' in listener) await openSocket(front, listener.socket)
  else await listening(front, { host: listener.host, port: listener.port })
  const address = front.address()
  const remove = (key: string, server: StdioServer) => {
    servers.delete(key)
    const stopping = server.stop().finally(() => removed.delete(stopping))
    removed.add(stopping)
  }
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    serve(specs) {
      const wanted = new Map(specs.map((spec) => [spec.key, spec]))
      for (const [key, server] of servers) if (!wanted.has(key)) remove(key, server)
      for (const [key, spec] of wanted) {
        const known = servers.get(key)
        if (known === undefined) servers.set(key, new StdioServer(spec, parts))
        else known.change(spec)
      }
    },
    status,
    async stop() {
      front.close()
      await Promise.all([...removed, ...[...servers.values()].map((server) => server.stop())])
      front.closeAllConnections()
    },
  }
}

async function openSocket(front: Server, socket: string): Promise<void> {
  await rm(socket, { force: true })
  await listening(front, { path: socket })
  await chmod(socket, SOCKET_MODE)
}

function listening(server: Server, where: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(where, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function logRefusals(log: Log, pool: string): PoolObserver {
  return {
    watch() {},
    refused: (bound) => log.warn({ pool, bound }, 'a process was not started: the limit is reached'),
  }
}
