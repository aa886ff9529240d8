import type { GatewayMetrics } from '../../metrics.ts'
import type { BundleMetrics } from './bundles.ts'

/** Returns the series of configuration bundles. */
export function createBundleMetrics(metrics: GatewayMetrics): BundleMetrics {
  const revision = metrics.gauge('plat_gateway_config_bundle_revision')
  const applied = metrics.counter('plat_gateway_config_bundles_applied_total')
  const refused = metrics.counter('plat_gateway_config_bundles_refused_total')
  return {
    revision: (value) => revision.set({}, value),
    applied: () => applied.inc({}),
    refused: (reason) => refused.inc({ reason }),
  }
}
