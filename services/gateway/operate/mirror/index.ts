import { hash } from 'node:crypto'
import { hostname } from 'node:os'
import { type Clock, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Access } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import type { Leadership } from '@plat/state'
import type { Mirrored } from './mirror.ts'

/** Source of the copies. */
export interface MirrorSource {
  /** Returns all objects that should exist in the cluster now. */
  wanted(): readonly Mirrored[]
  /** Registers a listener for changes of `wanted`. */
  follow(notify: () => void): void
}

export interface MirrorOptions {
  readonly config: {
    readonly revocationMirror: { readonly enabled: boolean }
    readonly tokenVault: { readonly enabled: boolean; readonly mirror: { readonly enabled: boolean } }
    readonly stateBackend: { readonly type: 'file' | 'postgres'; readonly schema: string }
  }
  readonly revocations: MirrorSource
  readonly accounts: MirrorSource
  readonly env: NodeJS.ProcessEnv
  /** Default: the cluster that this process runs in. */
  readonly access?: Access
  readonly dialer: Dialer
  readonly leadership: Leadership
  readonly clock: Clock
  readonly log: Log
}

/** The mirrors, with their key in gateway.json and the job name for leader election. */
const MIRRORS = [
  { key: 'revocationMirror', of: 'revocations', kind: 'AgentRevocation', plural: 'agentrevocations', job: 'mirror' },
  {
    key: 'tokenVault.mirror',
    of: 'accounts',
    kind: 'ConnectedAccount',
    plural: 'connectedaccounts',
    job: 'accounts-mirror',
  },
] as const

/**
 * Starts to copy break-glass revocations and connected accounts to the cluster (docs/spec/gateway.md, `revocationMirror`, `tokenVault.mirror`).
 * Returns null if both are off. Rejects outside a cluster.
 */
export async function startMirrors(options: MirrorOptions): Promise<{ close(): Promise<void> } | null> {
  const { config, env, dialer, leadership, clock, log } = options
  const { revocationMirror, tokenVault, stateBackend } = config
  const enabled = {
    revocationMirror: revocationMirror.enabled,
    'tokenVault.mirror': tokenVault.enabled && tokenVault.mirror.enabled,
  }
  const wanted = MIRRORS.filter(({ key }) => enabled[key])
  const [first] = wanted
  if (first === undefined) return null
  const { clusterAccess, KubernetesApi } = await import('@plat/kubernetes')
  const { Mirror } = await import('./mirror.ts')
  const inCluster = () =>
    clusterAccess({ env }).catch((error: unknown) => {
      throw new Error(`${first.key}: ${reasonOf(error)}`)
    })
  const access = options.access ?? (await inCluster())
  const api = new KubernetesApi({ access, dialer, clock })
  const stop = new AbortController()
  const running: Promise<void>[] = []
  for (const { of, kind, plural, job } of wanted) {
    const isShared = stateBackend.type === 'postgres'
    const keeper = isShared ? `postgres/${stateBackend.schema}` : `file/${hostname()}`
    const mirror = new Mirror({
      ...{ api, kind, plural, clock, log },
      owner: ownerOf(access.namespace, keeper),
      wanted: () => options[of].wanted(),
    })
    options[of].follow(() => mirror.changed())
    if (isShared) leadership.run(job, (_, signal) => mirror.run(signal))
    else running.push(mirror.run(stop.signal))
  }
  return {
    async close() {
      stop.abort()
      await Promise.all(running)
    },
  }
}

/** Name of the owner of the copies, as a label value. */
function ownerOf(namespace: string | null, keeper: string): string {
  return hash('sha256', JSON.stringify([namespace, keeper]), 'hex').slice(0, 32)
}
