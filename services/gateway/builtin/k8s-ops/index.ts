import { type Clock, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Static } from 'typebox'
import type { BuiltinServer, ToolLabels } from '../../call/index.ts'
import type { ClusterSettings } from './api.ts'
import { ClusterScope } from './cluster-scope.ts'
import type { k8sOpsBlock } from './config.ts'
import { Kinds } from './kinds.ts'
import { createGetTool } from './read/get-tool.ts'
import { createListTool } from './read/list-tool.ts'
import { createLogsTool } from './read/logs-tool.ts'
import { createWriteTools } from './write/write-tools.ts'

export type K8sOpsConfig = Readonly<Static<typeof k8sOpsBlock.schema>>

export interface K8sOpsParts {
  readonly config: K8sOpsConfig
  /** In a cluster it names the API server. */
  readonly env: NodeJS.ProcessEnv
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
}

const NAME = 'plat-k8s'
const NO_LABELS: ToolLabels = { taints: [], clearTaints: [], sinks: [] }

/**
 * Creates the built-in server `plat-k8s` (docs/spec/gateway.md, `k8sOps`); null if it is not enabled. Rejects if no API server is configured, or
 * its credentials cannot be read.
 */
export async function createK8sOps({ config, env, dialer, clock }: K8sOpsParts): Promise<BuiltinServer | null> {
  if (!config.enabled) return null
  const { maxListItems, maxLogLines, maxLogBytes } = config
  const api = { settings: await settingsOf(config, env), dialer, clock }
  const parts = {
    api,
    kinds: new Kinds(clock),
    reach: new ClusterScope(config),
    maxListItems,
    maxLogLines,
    maxLogBytes,
  }
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
  const { clusterAccess } = await import('@plat/kubernetes')
  const access = await clusterAccess({ env, apiServer, tokenFile, caFile }).catch((error: unknown) => {
    throw new Error(`k8sOps: ${reasonOf(error)}`)
  })
  return {
    access,
    actsAs: serviceAccount === '' ? null : `system:serviceaccount:${serviceAccount.replace('/', ':')}`,
    timeoutMs: timeoutSeconds * 1000,
  }
}
