import type { GatewayMetrics } from '../../metrics.ts'
import type { ExporterMetrics } from './export/exporter.ts'
import type { CallMetrics } from './tracer.ts'

/** Returns the series of exported spans, and of calls by the semantic conventions. An empty label value means that there is none. */
export function createOtelMetrics(metrics: GatewayMetrics): ExporterMetrics & CallMetrics {
  const exported = metrics.counter('plat_gateway_otel_spans_exported_total')
  const dropped = metrics.counter('plat_gateway_otel_spans_dropped_total')
  const failed = metrics.counter('plat_gateway_otel_spans_failed_total')
  const queued = metrics.gauge('plat_gateway_otel_queue_length')
  const served = metrics.histogram('mcp_server_operation_duration_seconds')
  const generated = metrics.histogram('gen_ai_client_operation_duration_seconds')
  const tokens = metrics.histogram('gen_ai_client_token_usage')
  return {
    exported: (spans) => exported.inc({}, spans),
    dropped: (spans) => dropped.inc({}, spans),
    failed: (spans) => failed.inc({}, spans),
    queued: (spans) => queued.set({}, spans),
    mcp: ({ method, errorType }, seconds) =>
      served.observe({ mcp_method_name: method, error_type: errorType }, seconds),
    generated: ({ operation, provider, requestModel, responseModel, errorType }, seconds) =>
      generated.observe(
        {
          gen_ai_operation_name: operation,
          gen_ai_provider_name: provider,
          gen_ai_request_model: requestModel,
          gen_ai_response_model: responseModel,
          error_type: errorType,
        },
        seconds,
      ),
    tokens: ({ operation, provider, route, type }, count) =>
      tokens.observe(
        {
          gen_ai_operation_name: operation,
          gen_ai_provider_name: provider,
          plat_model_route: route,
          gen_ai_token_type: type,
        },
        count,
      ),
  }
}
