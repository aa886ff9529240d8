import type { Outcome } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'

export type ModelMetrics = ReturnType<typeof createModelMetrics>

export function createModelMetrics(metrics: GatewayMetrics) {
  const routes = metrics.gauge('plat_gateway_model_routes')
  const requests = metrics.counter('plat_gateway_model_requests_total')
  const tokens = metrics.counter('plat_gateway_model_tokens_total')
  const media = metrics.counter('plat_gateway_model_media_total')
  const open = metrics.gauge('plat_gateway_model_circuits_open')
  const failures = metrics.counter('plat_gateway_model_endpoint_failures_total')
  return {
    routes: (count: number) => routes.set({}, count),
    settled(route: string, { status, usage, media: used }: Outcome) {
      requests.inc({ route, status })
      if (used !== undefined) media.inc({ route, unit: used.unit }, used.count)
      if (usage === null) return
      tokens.inc({ route, kind: 'prompt' }, usage.prompt)
      tokens.inc({ route, kind: 'completion' }, usage.completion)
    },
    circuitsOpen: (count: number) => open.set({}, count),
    endpointFailed: (route: string, endpoint: string) => failures.inc({ route, endpoint }),
  }
}
