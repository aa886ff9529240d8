import type { BuildInfo, Clock, Ids, PoolObservers } from '@plat/core'
import type { Dialer } from '@plat/http'
import type { Log } from '@plat/process'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Plane } from '../../pipeline/plane.ts'
import type { Review } from '../../pipeline/stage.ts'
import type { OtelConfig } from './config.ts'
import type { Erase } from './content.ts'
import { TracedPlane, type Tracing } from './context/plane.ts'
import { PassingTrace } from './context/trace.ts'
import { envelope } from './export/encode.ts'
import { Exporter } from './export/exporter.ts'
import { Collector } from './export/post.ts'
import { createOtelMetrics } from './metrics.ts'
import type { ModelWords } from './models.ts'
import { createNotesReview } from './notes.ts'
import { Tracer } from './tracer.ts'

export type { ModelWords } from './models.ts'

export interface OtelParts {
  readonly config: { readonly otel: OtelConfig; readonly sessions: { readonly traceURLTemplate: string } }
  readonly build: BuildInfo
  readonly models: ModelWords
  /** Redacts by `genAI.contentDlpProfile`. */
  readonly erase: Erase
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: GatewayMetrics
  readonly pools?: PoolObservers<'spans' | 'span_bytes'>
}

/** Traces of calls (docs/spec/gateway.md, `otel`). */
export interface OtelFeature {
  /** Wraps a plane so that its calls have traces. */
  plane(plane: Plane): Plane
  readonly reviews: readonly Review<'target'>[]
  /** Observers of the end of calls; none if there are no spans. */
  readonly observers: readonly Pick<Tracer, 'ended' | 'turnedAway'>[]
  close(): Promise<void>
}

/** Creates traces if they are exported or linked; otherwise only propagates those of callers. */
export function createOtel(parts: OtelParts): OtelFeature {
  const { config } = parts
  if (config.otel.enabled) return exporting(parts)
  const linked = config.sessions.traceURLTemplate !== ''
  const plane = (inner: Plane) => (linked ? new TracedPlane(inner, passing) : inner)
  return { plane, reviews: [], observers: [], close: async () => {} }
}

/** Calls belong to the traces of their callers only. */
const passing: Tracing = {
  begin: ({ wire }) => new PassingTrace(wire),
  monotonic: () => 0,
}

function exporting(parts: OtelParts): OtelFeature {
  const { build, models, dialer } = parts
  const metrics = createOtelMetrics(parts.metrics)
  const config = parts.config.otel
  const resource = {
    ...config.resourceAttributes,
    'service.name': config.serviceName,
    'service.version': build.version,
  }
  const exporter = new Exporter({
    ...parts,
    config,
    collector: new Collector(config, dialer),
    metrics,
    envelope: envelope(resource, { name: 'plat-gateway', version: build.version }),
  })
  const tracer = new Tracer({ ...parts, config, exporter, metrics })
  const { captureContent, maxContentBytes } = config.genAI
  return {
    plane: (inner) => new TracedPlane(inner, tracer),
    reviews: [createNotesReview(models, { maxLength: captureContent ? maxContentBytes : 0 })],
    observers: [tracer],
    async close() {
      await tracer.settled()
      await exporter.close()
    },
  }
}
