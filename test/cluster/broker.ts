import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { ApiServer } from './api-server.ts'

const BIN = path.resolve(import.meta.dirname, '../../services/identity/bin/plat-identity.mjs')

/** Permissions of the broker in a cluster. */
export const RULES = [
  { apiGroups: ['authentication.k8s.io'], resources: ['tokenreviews'], verbs: ['create'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
  { apiGroups: ['agents.x-k8s.io'], resources: ['sandboxes'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['extensions.agents.x-k8s.io'], resources: ['sandboxclaims'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['plat.dev'], resources: ['agentsessions'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['plat.dev'], resources: ['agentsessions/status'], verbs: ['patch'] },
  { apiGroups: ['plat.dev'], resources: ['agents', 'trusttiers'], verbs: ['get'] },
]

/** The broker's service account. */
export const BROKER = { namespace: 'plat-system', name: 'plat-identity' } as const

/** A broker in a separate process, with a service account that has exactly its permissions. */
export interface ClusterBroker {
  readonly bootstrapUrl: string
  stop(): Promise<void>
}

export async function startBroker(server: ApiServer): Promise<ClusterBroker> {
  const tokenFile = path.join(server.dir, 'broker.token')
  writeFileSync(tokenFile, await serviceAccountOf(server))
  const flags = ['-listen', '127.0.0.1:0', '-bootstrap-listen', '127.0.0.1:0', '-kubernetes-api', server.url]
  const files = ['-kubernetes-ca-file', server.caFile, '-kubernetes-token-file', tokenFile]
  const child = spawn(process.execPath, [BIN, ...flags, ...files], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PLAT_BROKER_TOKEN: 'broker-secret' },
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const { bootstrap }: { bootstrap?: string } = JSON.parse(line)
    if (bootstrap === undefined) continue
    child.stdout.resume()
    return { bootstrapUrl: bootstrap, stop: () => end(child) }
  }
  throw new Error('the broker did not start')
}

async function serviceAccountOf({ ask }: ApiServer): Promise<string> {
  const { namespace, name } = BROKER
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
  await ask('POST', '/api/v1/namespaces', { metadata: { name: namespace } })
  await ask('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name } })
  await ask('POST', `${rbac}/clusterroles`, { metadata: { name }, rules: RULES })
  const subjects = [{ kind: 'ServiceAccount', name, namespace }]
  await ask('POST', `${rbac}/clusterrolebindings`, { metadata: { name }, roleRef, subjects })
  const { body } = await ask('POST', `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, { spec: {} })
  const { token }: { token?: string } = Object(body.status)
  if (token === undefined) throw new Error(`no token for the broker: ${JSON.stringify(body)}`)
  return token
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}
