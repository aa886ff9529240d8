import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import { createServer, type Server as NetServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Below all that Linux and others hand out by themselves, so that no connection takes the port before the server does. */
const FIRST_PORT = 20_000
const LAST_PORT = 32_000

/** Each process begins somewhere else and never gives a port twice. */
let nextPort = randomInt(FIRST_PORT, LAST_PORT)

/** Starts a server on a loopback address and returns its port. Port 0 lets the system choose one. */
export async function listening(server: NetServer, host = '127.0.0.1', at = 0): Promise<number> {
  server.listen(at, host)
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}

/** Stops a server and cuts its connections. */
export async function closed(server: Server | TlsServer): Promise<void> {
  const over = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await over
}

/** Returns a free loopback port, for a server that cannot choose one. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = nextPort
    nextPort = port + 1 < LAST_PORT ? port + 1 : FIRST_PORT
    const probe = createServer().listen(port, '127.0.0.1')
    const isUsed = await once(probe, 'listening').then(
      () => false,
      () => true,
    )
    if (isUsed) continue
    probe.close()
    await once(probe, 'close')
    return port
  }
}

const folders: string[] = []

/**
 * Creates a folder for a test. It is removed when the process ends, not with the test: hooks of a test run in the order of their registration, so
 * one that removed the folder would run while servers of the test still write to it.
 */
export function tempFolder(): string {
  if (folders.length === 0) process.once('exit', remove)
  const dir = mkdtempSync(path.join(tmpdir(), 'plat-'))
  folders.push(dir)
  return dir
}

function remove(): void {
  for (const dir of folders) {
    try {
      rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 })
    } catch {
      // A child of a failed test may still write there; the test has reported its failure.
    }
  }
}
