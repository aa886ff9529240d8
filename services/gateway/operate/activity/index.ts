import { type Clock, type PoolObservers, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { Identity } from '../../call/index.ts'
import type { Activity, ActivityParts } from './activity.ts'
import type { ActivityConfig } from './config.ts'

export interface ActivityOptions {
  readonly config: { readonly activity: ActivityConfig }
  readonly env: NodeJS.ProcessEnv
  readonly dialer: Dialer
  /** Reports the agents with calls in flight. */
  readonly live: { busy(visit: (who: Identity) => void): void }
  readonly taints: ActivityParts['taints']
  readonly clock: Clock
  readonly log: Log
  readonly pools?: PoolObservers<'session_activity'>
}

/**
 * Starts to write the last use of each session as an annotation of its AgentSession (docs/spec/gateway.md, `activity`); an operator suspends idle
 * sessions. Returns null while it is off. Rejects if the process runs outside a cluster and `activity` names none.
 */
export async function startActivity(options: ActivityOptions): Promise<Activity | null> {
  const { config, env, dialer, live, taints, clock, log } = options
  const { enabled, intervalSeconds, apiServer, tokenFile, caFile } = config.activity
  if (!enabled) return null
  const { clusterAccess, KubernetesApi } = await import('@plat/kubernetes')
  const { Activity } = await import('./activity.ts')
  const access = await clusterAccess({ env, apiServer, tokenFile, caFile }).catch((error: unknown) => {
    throw new Error(`activity: ${reasonOf(error)}`)
  })
  const api = new KubernetesApi({ access, dialer, clock })
  const observer = options.pools?.of('session_activity')
  return new Activity({ api, everyMs: intervalSeconds * 1000, live, taints, clock, log, observer })
}
