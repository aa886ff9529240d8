import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock, Ids } from '@plat/core'
import { type ListenOptions, listen, parseAddress, type RawRoute } from '@plat/http'
import { createSelfSigned } from '@plat/keys'
import type { Log } from '@plat/process'
import { stringify } from 'yaml'
import { type PlatFolder, writePrivate } from '../shared/home.ts'

export interface KubectlOptions {
  readonly home: PlatFolder
  /** `127.0.0.1:0`. */
  readonly listen: string
  /** Routes of the resource API; empty if it is disabled. */
  readonly routes: readonly RawRoute[]
  /** The token in the kubeconfig. */
  readonly token: string
  readonly log: Log
  readonly clock: Clock
  readonly ids: Ids
}

/** Lifetime of the certificate, in milliseconds. A new one is created at each start. */
const VALID_MS = 10 * 365 * 24 * 60 * 60 * 1000

/** How often its files are checked for changes, in milliseconds. They never change, so rarely. */
const RELOAD_MS = 60 * 60 * 1000

const SERIAL_BYTES = 15

/**
 * Serves the resource API over TLS, because kubectl sends no token over plain HTTP, and writes `.plat/kubeconfig`, which trusts only
 * the certificate of this start. Does neither if there are no routes.
 */
export async function openKubectl(options: KubectlOptions): Promise<{ close(): Promise<void> }> {
  const { home, routes: raw, token, log, clock, ids } = options
  if (raw.length === 0) {
    await rm(home.kubeconfig, { force: true })
    return { async close() {} }
  }
  const certificate = await certificateOf(options)
  const tls = { ...filesOf(home), clientCertificates: 'none', reloadMs: RELOAD_MS } satisfies ListenOptions['tls']
  const listener = await listen({ address: options.listen, tls, raw, clock, ids, log })
  await writePrivate(home.kubeconfig, kubeconfigOf(listener.url, certificate, token))
  return listener
}

function filesOf({ resourceKeys }: PlatFolder) {
  return { certFile: join(resourceKeys, 'cert.pem'), keyFile: join(resourceKeys, 'key.pem') }
}

async function certificateOf({ home, listen: address, clock, ids }: KubectlOptions): Promise<string> {
  const host = parseAddress(address)?.host
  const { certificate, privateKey } = createSelfSigned({
    name: 'plat resources',
    hosts: [...new Set(['localhost', '127.0.0.1', '::1', ...(host === undefined ? [] : [host])])],
    notBefore: clock.now(),
    notAfter: clock.now() + VALID_MS,
    serial: ids.random(SERIAL_BYTES),
  })
  const { certFile, keyFile } = filesOf(home)
  await mkdir(home.resourceKeys, { recursive: true, mode: 0o700 })
  await writePrivate(keyFile, privateKey)
  await writePrivate(certFile, certificate)
  return certificate
}

function kubeconfigOf(server: string, certificate: string, token: string): string {
  const authority = Buffer.from(certificate).toString('base64')
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'plat', cluster: { server, 'certificate-authority-data': authority } }],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'plat', context: { cluster: 'plat', user: 'admin', namespace: 'default' } }],
    'current-context': 'plat',
  })
}
