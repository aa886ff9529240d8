import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { parse, parseAllDocuments } from 'yaml'
import type { ApiServer } from './api-server.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')
const BIN = path.join(ROOT, 'services/operator/bin/plat-operator.mjs')

/** Namespace of the operator. */
export const NAMESPACE = 'plat-system'

/** An operator in a separate process. */
export interface ClusterOperator {
  readonly url: string
  /** Lines of its log, as they come. */
  readonly lines: Readonly<Record<string, unknown>>[]
  /** By SIGTERM. */
  stop(): Promise<void>
  kill(): Promise<void>
}

/** Starts one with the rights that the documentation names and no others. Leads change hands in seconds. */
export async function startClusterOperator(
  kubeconfig: string,
  flags: readonly string[] = [],
): Promise<ClusterOperator> {
  const common = ['-kubeconfig', kubeconfig, '-namespace', NAMESPACE, '-metrics-bind-address', '127.0.0.1:0']
  const quick = [
    '-leader-elect-lease-duration=3s',
    '-leader-elect-renew-deadline=2s',
    '-leader-elect-retry-period=200ms',
  ]
  const child = spawn(process.execPath, [BIN, ...common, ...quick, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: Record<string, unknown>[] = []
  const listening = Promise.withResolvers<string>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    const logged = Object(JSON.parse(line))
    lines.push(logged)
    if (logged.msg === 'listening') listening.resolve(String(logged.url))
  })
  child.once('exit', () => listening.reject(new Error(`the operator did not start: ${JSON.stringify(lines)}`)))
  return {
    url: await listening.promise,
    lines,
    stop: () => end(child, 'SIGTERM'),
    kill: () => end(child, 'SIGKILL'),
  }
}

async function end(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill(signal)
  await once(child, 'exit')
}

/** A kubeconfig of a service account with the rights that `docs/operator.md` lists. */
export async function operatorAccount({ ask, dir, url, caFile }: ApiServer): Promise<string> {
  const must = async (where: string, body: object) => {
    const answer = await ask('POST', where, body)
    assert.ok(answer.status < 300, `${where}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const name = 'plat-operator'
  await must('/api/v1/namespaces', { metadata: { name: NAMESPACE } })
  await must(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, { metadata: { name } })
  const subjects = [{ kind: 'ServiceAccount', name, namespace: NAMESPACE }]
  for (const role of documentedRoles()) {
    const scope = role.kind === 'Role' ? `/namespaces/${NAMESPACE}` : ''
    const plural = `${role.kind.toLowerCase()}s`
    await must(`${rbac}${scope}/${plural}`, role)
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: role.kind, name: role.metadata.name }
    const metadata = { name: role.metadata.name }
    await must(`${rbac}${scope}/${plural.replace(/s$/, 'bindings')}`, { metadata, roleRef, subjects })
  }
  const token = await must(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${name}/token`, { spec: {} })
  const file = path.join(dir, 'operator.kubeconfig')
  const config = {
    'current-context': name,
    contexts: [{ name, context: { cluster: name, user: name } }],
    clusters: [{ name, cluster: { server: url, 'certificate-authority': caFile } }],
    users: [{ name, user: { token: Object(token.status).token } }],
  }
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 })
  return file
}

/** Gives the operator the rights that `docs/sessions.md` lists, and no others. */
export async function grantSandboxes(server: ApiServer): Promise<void> {
  await grantRole(server, 'docs/sessions.md')
}

/** Gives the operator the rights that `docs/stdio.md` lists, and no others. */
export async function grantStdioServers(server: ApiServer): Promise<void> {
  await grantRole(server, 'docs/stdio.md')
}

async function grantRole({ ask }: ApiServer, file: string): Promise<void> {
  const page = readFileSync(path.join(ROOT, file), 'utf8')
  const [, yaml = ''] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(page) ?? []
  const role = parse(yaml)
  const { name } = role.metadata
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
  const subjects = [{ kind: 'ServiceAccount', name: 'plat-operator', namespace: NAMESPACE }]
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const binding = { metadata: { name }, roleRef, subjects }
  for (const [plural, body] of [['clusterroles', role] as const, ['clusterrolebindings', binding] as const]) {
    const answer = await ask('POST', `${rbac}/${plural}`, body)
    assert.ok(answer.status < 300, `${plural}: ${JSON.stringify(answer.body)}`)
  }
}

interface Role {
  readonly kind: 'Role' | 'ClusterRole'
  readonly metadata: { readonly name: string }
}

function documentedRoles(): readonly Role[] {
  const page = readFileSync(path.join(ROOT, 'docs/operator.md'), 'utf8')
  const [, yaml = ''] = /```yaml\n(apiVersion: rbac[\s\S]*?)```/.exec(page) ?? []
  const roles: Role[] = parseAllDocuments(yaml).map((document) => document.toJS())
  assert.equal(roles.length, 2)
  return roles
}
