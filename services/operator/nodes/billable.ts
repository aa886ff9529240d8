import { type Clock, reasonOf, rfc3339 } from '@plat/core'
import { type KubernetesApi, KubernetesApiError, member, textOf } from '@plat/kubernetes'
import type { Log } from '@plat/process'
import type { OperatorRegistry } from '../controllers/controller.ts'
import { pause } from '../controllers/elector.ts'
import type { Outputs } from '../kube/outputs.ts'
import { packFile } from '../render/size/packed.ts'
import { countSandboxNodes } from './count.ts'
import { type Peaks, raised, readPeaks } from './peaks.ts'

/** Where the peaks of the day and the month outlive their leader. */
const CONFIG_MAP = 'plat-billable-nodes'
const KEY = 'nodes.json'

export interface BillableNodesOptions {
  readonly api: KubernetesApi
  /** Namespace of the ConfigMap. */
  readonly namespace: string
  /** Where sandboxes are looked for; empty: everywhere. */
  readonly watched: readonly string[]
  /** Interval between samples, in milliseconds. */
  readonly everyMs: number
  readonly outputs: Outputs
  readonly registry: OperatorRegistry
  readonly clock: Clock
  readonly log: Log
}

/**
 * Samples how many nodes run sandboxes (docs/spec/gateway.md, `plat_billable_nodes`) for as long as this replica leads: now, and the most at once of
 * the day and of the month. Nothing is switched off by it. Ends when `signal` aborts; never rejects.
 */
export async function meterBillableNodes(options: BillableNodesOptions, signal: AbortSignal): Promise<void> {
  const { registry, everyMs, clock, log } = options
  const gauge = registry.gauge('plat_billable_nodes')
  let peaks: Peaks | null | undefined
  let problem: string | null = null
  while (!signal.aborted) {
    try {
      // Whatever the leader before has seen of this month counts.
      peaks = peaks === undefined ? await readKept(options, signal) : peaks
      const current = await countSandboxNodes(options.api, options.watched, signal)
      peaks = raised(peaks, current, rfc3339(clock.now()))
      gauge.set({ period: 'current' }, current)
      gauge.set({ period: 'day' }, peaks.dayNodes)
      gauge.set({ period: 'month' }, peaks.monthNodes)
      const packed = await packFile(KEY, JSON.stringify(peaks))
      if (peaks.monthNodes > 0) await options.outputs.configMap(CONFIG_MAP, packed, signal)
      problem = null
    } catch (error) {
      const reason = reasonOf(error)
      if (!signal.aborted && reason !== problem)
        log.warn({ error: reason }, 'billable nodes cannot be counted or stored')
      problem = reason
    }
    await pause(clock, everyMs, signal)
  }
  // Another leader shows them now.
  gauge.clear()
}

async function readKept({ api, namespace }: BillableNodesOptions, signal: AbortSignal): Promise<Peaks | null> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/configmaps/${CONFIG_MAP}`
  try {
    const { body } = await api.ask({ method: 'GET', path, signal })
    return readPeaks(textOf(member(body, 'data'), KEY))
  } catch (error) {
    if (error instanceof KubernetesApiError && error.status === 404) return null
    throw error
  }
}
