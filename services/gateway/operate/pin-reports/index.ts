import { hostname } from 'node:os'
import { type Clock, reasonOf } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { PinReportsConfig } from './config.ts'
import type { PinReports, PinReportsParts } from './pin-reports.ts'

export interface PinReportsOptions extends Pick<PinReportsParts, 'servers' | 'report'> {
  readonly config: { readonly pinReports: PinReportsConfig }
  readonly env: NodeJS.ProcessEnv
  readonly dialer: Dialer
  readonly clock: Clock
  readonly log: Log
}

/** Starts to report the tools of servers to the cluster. Returns null while it is off. Rejects outside a cluster. */
export async function startPinReports(options: PinReportsOptions): Promise<PinReports | null> {
  const { config, env, dialer, clock, log, servers, report } = options
  const { enabled, intervalSeconds, apiServer, tokenFile, caFile } = config.pinReports
  if (!enabled) return null
  const { clusterAccess, KubernetesApi } = await import('@plat/kubernetes')
  const { PinReports } = await import('./pin-reports.ts')
  const access = await clusterAccess({ env, apiServer, tokenFile, caFile }).catch((error: unknown) => {
    throw new Error(`pinReports: ${reasonOf(error)}`)
  })
  const api = new KubernetesApi({ access, dialer, clock })
  return new PinReports({
    ...{ api, clock, log, servers, report },
    everyMs: intervalSeconds * 1000,
    replica: hostname(),
  })
}
