import { readFile } from 'node:fs/promises'
import { readText } from '@plat/config'
import { type Clock, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Static } from 'typebox'
import type { BuiltinServer, ToolLabels } from '../../call/index.ts'
import type { ClusterSettings } from './api.ts'
import type { k8sOpsBlock } from './config.ts'
import { Kinds } from './kinds.ts'
import { Reach } from './reach.ts'
import { createGetTool } from './read/get-tool.ts'
import { createListTool } from './read/list-tool.ts'
import { createLogsTool } from './read/logs-tool.ts'
import { createWriteTools } from './write/write-tools.ts'

export type K8sOpsConfig = Readonly<Static<typeof k8sOpsBlock.schema>>

export interface K8sOpsParts {
  readonly config: K8sOpsConfig
  /** Inside a cluster it says where its API server is. */
  readonly env: NodeJS.ProcessEnv
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
}

const NAME = 'plat-k8s'
const NO_LABELS: ToolLabels = { taints: [], clearTaints: [], sinks: [] }
/** Where every pod finds what it needs. */
const IN_CLUSTER = '/var/run/secrets/kubernetes.io/serviceaccount'
/** Bytes of a bundle of authorities. */
const MAX_CA_BYTES = 1024 * 1024

/**
 * The built-in server `plat-k8s` (document 3, `k8sOps`); null: it is not enabled. Rejects when nothing says where the API server is, or
 * `k8sOps.caFile` cannot be read.
 */
export async function createK8sOps({ config, env, dialer, clock }: K8sOpsParts): Promise<BuiltinServer | null> {
  if (!config.enabled) return null
  const { maxListItems, maxLogLines, maxLogBytes } = config
  const api = { settings: await settingsOf(config, env), dialer, clock }
  const parts = { api, kinds: new Kinds(clock), reach: new Reach(config), maxListItems, maxLogLines, maxLogBytes }
  const reads = [createListTool(parts), createGetTool(parts), createLogsTool(parts)]
  const tools = [...reads, ...createWriteTools(parts, config.writes)]
  const labels: ToolLabels = { ...NO_LABELS, taints: config.taintLabels }
  return {
    name: NAME,
    title: 'Cluster operations',
    instructions:
      'Reads objects and logs of a Kubernetes cluster, and changes a few of them where this gateway lets it.',
    trust: 'untrusted',
    dataClass: 'internal',
    labels: (tool) => (tool === null ? NO_LABELS : labels),
    tools: () => tools,
  }
}

async function settingsOf(config: K8sOpsConfig, env: NodeJS.ProcessEnv): Promise<ClusterSettings> {
  const { apiServer, tokenFile, caFile, serviceAccount, timeoutSeconds } = config
  return {
    origin: new URL(apiServer || inCluster(env)).origin,
    tokenFile: tokenFile || `${IN_CLUSTER}/token`,
    caPEM: caFile === '' ? await readText(`${IN_CLUSTER}/ca.crt`, MAX_CA_BYTES) : await authorities(caFile),
    actsAs: serviceAccount === '' ? null : `system:serviceaccount:${serviceAccount.replace('/', ':')}`,
    timeoutMs: timeoutSeconds * 1000,
  }
}

function inCluster({ KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' }: NodeJS.ProcessEnv) {
  if (host === '') throw new Error('k8sOps.apiServer is empty, and this is no pod of a cluster: set it')
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function authorities(caFile: string): Promise<string> {
  try {
    return await readFile(caFile, 'utf8')
  } catch (error) {
    throw new Error(`k8sOps.caFile cannot be read: ${reasonOf(error)}`)
  }
}
