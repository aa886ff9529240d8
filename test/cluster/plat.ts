import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { systemClock } from '@plat/core'
import { createDialer } from '@plat/http'
import { KubernetesApi, kubeconfigAccess } from '@plat/kubernetes'
import { silentLog } from '@plat/process'
import { type Definition, definitionFiles } from '@plat/resources/definitions'
import { parse } from 'yaml'
import { ADMIN_TOKEN, type ApiServer, startApiServer } from './api-server.ts'
import { buildBinaries } from './binaries.ts'

/** An API server that knows our kinds, and what speaks to it as its administrator. */
export interface Cluster {
  readonly server: ApiServer
  /** Path of a kubeconfig of its administrator. */
  readonly kubeconfig: string
  readonly api: KubernetesApi
  /** Column names and cells, as `kubectl get` requests them. */
  table(path: string): Promise<{ readonly columns: readonly string[]; readonly rows: readonly (readonly unknown[])[] }>
  stop(): Promise<void>
}

interface Table {
  readonly columnDefinitions: readonly { readonly name: string }[]
  readonly rows: readonly { readonly cells: readonly unknown[] }[]
}

/** Starts an API server and gives it the definitions of `deploy/crds`. */
export async function startCluster(): Promise<Cluster> {
  const binaries = buildBinaries(() => {})
  assert.ok(typeof binaries !== 'string', String(binaries))
  const server = await startApiServer(binaries)
  const definitions: Definition[] = [...definitionFiles().values()].map((text) => parse(text, { version: '1.1' }))
  for (const definition of definitions) {
    const where = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    const { status, body } = await server.ask('POST', where, definition)
    assert.equal(status, 201, JSON.stringify(body))
  }
  for (const { metadata } of definitions) {
    const [plural] = metadata.name.split('.')
    while ((await server.ask('GET', `/apis/plat.dev/v1alpha1/${plural}`)).status !== 200)
      await new Promise((resolve) => setTimeout(resolve, 50))
  }
  const kubeconfig = writeKubeconfig(server)
  const access = await kubeconfigAccess(kubeconfig)
  const dialer = createDialer({ clock: systemClock, log: silentLog })
  return {
    server,
    kubeconfig,
    api: new KubernetesApi({ access, dialer, clock: systemClock }),
    async table(where) {
      const { headers, trust } = await access.credentials()
      const { bytes } = await dialer.fetchBytes(new URL(where, server.url), 'kubernetes', {
        ...trust,
        headers: { ...headers, accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
        maxBytes: 1024 * 1024,
        timeoutMs: 60_000,
      })
      const { columnDefinitions, rows }: Table = JSON.parse(Buffer.from(bytes).toString())
      return { columns: columnDefinitions.map(({ name }) => name), rows: rows.map(({ cells }) => cells) }
    },
    async stop() {
      dialer.close()
      await server.stop()
    },
  }
}

/** As the administrator of this server. */
function writeKubeconfig({ dir, url, caFile }: ApiServer): string {
  const file = path.join(dir, 'kubeconfig')
  const config = {
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin', namespace: 'default' } }],
    clusters: [{ name: 'test', cluster: { server: url, 'certificate-authority': caFile } }],
    users: [{ name: 'admin', user: { token: ADMIN_TOKEN } }],
  }
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  return file
}
