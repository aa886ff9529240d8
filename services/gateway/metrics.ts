import { isUnset } from '@plat/config'
import type { BuildInfo, PoolObservers, PoolOf } from '@plat/core'
import type { KeyCallResult } from '@plat/key-services'
import { createPoolMeter, createRegistry, type Registry } from '@plat/metrics'
import { gatewayMetricRows } from './metric-rows.ts'

export type GatewayMetrics = Registry<typeof gatewayMetricRows>

/** The gateway's registry; one per process. */
export function createGatewayMetrics(build: BuildInfo, config: FeatureKeys): GatewayMetrics {
  const features = new Set<string>(FEATURE_KEYS.filter((key) => !isUnset(config[key])))
  for (const block of FEATURE_BLOCKS) if (config[block]?.enabled === true) features.add(block)
  if ((config.a2a?.routesFile ?? '') !== '') features.add('a2a')
  if (config.clientAudit !== undefined && !isUnset(config.clientAudit.anchors)) features.add('clientAudit')
  const { upstream = '', auditAnchors = [] } = config.ctxengine ?? {}
  if (upstream !== '' || auditAnchors.length > 0) features.add('ctxengine')
  if (config.sbxd?.mirrorDecisions === true || (config.sbxd?.anchorIntervalSeconds ?? 0) > 0) features.add('sbxd')
  return createRegistry(gatewayMetricRows, { component: 'gateway', build, features })
}

/** The pools that callers share. */
export function createPoolMetrics(metrics: GatewayMetrics): PoolObservers<PoolOf<'gateway'>> {
  return createPoolMeter(metrics.gauge('plat_gateway_pool_used'), metrics.counter('plat_gateway_pool_refusals_total'))
}

/** Counts the operations of key services. */
export function keyServiceMeter(metrics: GatewayMetrics): (result: KeyCallResult) => void {
  const duration = metrics.histogram('plat_gateway_key_service_seconds')
  const failures = metrics.counter('plat_gateway_key_service_failures_total')
  return ({ service, operation, outcome, seconds }) => {
    duration.labels({ service, operation }).observe(seconds)
    if (outcome !== 'ok') failures.inc({ service, operation, reason: outcome })
  }
}

/** Keys of gateway.json without which the series of a feature are absent. */
const FEATURE_KEYS = ['auditCheckpointKey', 'auditSinks', 'sovereigntyPolicyFile', 'tenantsFile'] as const
/** Blocks that are switched on by `enabled`. */
const FEATURE_BLOCKS = [
  'tokenVault',
  'transparencyLog',
  'web',
  'egress',
  'exec',
  'liveView',
  'offline',
  'auditCollector',
  'configBundle',
  'configSync',
  'otel',
] as const
type FeatureKeys = Readonly<
  Partial<Record<(typeof FEATURE_KEYS)[number], string | readonly unknown[]>> &
    Partial<Record<(typeof FEATURE_BLOCKS)[number], { readonly enabled: boolean }>> & {
      readonly clientAudit?: { readonly anchors: readonly unknown[] }
      readonly sbxd?: { readonly mirrorDecisions: boolean; readonly anchorIntervalSeconds: number }
      readonly ctxengine?: { readonly upstream: string; readonly auditAnchors: readonly unknown[] }
      readonly a2a?: { readonly routesFile: string }
    }
>
