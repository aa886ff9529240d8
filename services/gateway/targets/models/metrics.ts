import type { Outcome } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'

/** Metrics of model routes. */
export interface ModelMetrics {
  /** `plat_gateway_model_routes` */
  routes(count: number): void
  /** `plat_gateway_model_requests_total`, `plat_gateway_model_tokens_total`, `plat_gateway_model_media_total` */
  settled(route: string, outcome: Outcome): void
  /** `plat_gateway_model_circuits_open` */
  circuitsOpen(count: number): void
  /** `plat_gateway_model_endpoint_failures_total` */
  endpointFailed(route: string, endpoint: string): void
}

export function createModelMetrics(metrics: GatewayMetrics): ModelMetrics {
  const routes = metrics.gauge('plat_gateway_model_routes')
  const requests = metrics.counter('plat_gateway_model_requests_total')
  const tokens = metrics.counter('plat_gateway_model_tokens_total')
  const media = metrics.counter('plat_gateway_model_media_total')
  const open = metrics.gauge('plat_gateway_model_circuits_open')
  const failures = metrics.counter('plat_gateway_model_endpoint_failures_total')
  return {
    routes: (count) => routes.set({}, count),
    settled(route, { status, usage, media: used }) {
      requests.inc({ route, status })
      if (used !== undefined) media.inc({ route, unit: used.unit }, used.count)
      if (usage === null) return
      tokens.inc({ route, kind: 'prompt' }, usage.prompt)
      tokens.inc({ route, kind: 'completion' }, usage.completion)
    },
    circuitsOpen: (count) => open.set({}, count),
    endpointFailed: (route, endpoint) => failures.inc({ route, endpoint }),
  }
}
