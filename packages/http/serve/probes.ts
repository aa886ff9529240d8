import type { BuildInfo } from '@plat/core'
import type { FastifyInstance, FastifyReply } from 'fastify'

export interface Probes {
  /** Returns false until everything is loaded, and while the process drains. */
  ready(): boolean
  /**
   * Short names of the reasons why most requests would be denied now; empty when there are none. Readable without a credential, so it contains no
   * details.
   */
  unavailable?(): readonly string[]
  readonly build: BuildInfo
  /** Returns the metrics in Prometheus text format 0.0.4. Absent: this listener has no `/metrics`. */
  metrics?(): string
}

/**
 * Mounts `GET /healthz`, `/readyz`, `/version` and `/metrics` (docs/spec/broker-api.md, "Endpoints"; docs/spec/gateway.md, "Endpoints"). `/readyz`
 * answers 503 `shutting down` while `ready()` is false, and 503 `unavailable` with `reasons` while there are any.
 */
export function mountProbes(app: FastifyInstance, { ready, unavailable, build, metrics }: Probes): void {
  const fresh = (reply: FastifyReply) => reply.header('cache-control', 'no-store')
  app.get('/healthz', (_request, reply) => fresh(reply).send({ status: 'ok' }))
  app.get('/readyz', (_request, reply) => {
    if (!ready()) return fresh(reply).code(503).send({ status: 'shutting down' })
    const reasons = unavailable?.() ?? []
    if (reasons.length > 0) return fresh(reply).code(503).send({ status: 'unavailable', reasons })
    return fresh(reply).send({ status: 'ready' })
  })
  mountVersion(app, build)
  if (metrics === undefined) return
  app.get('/metrics', (_request, reply) =>
    fresh(reply).type('text/plain; version=0.0.4; charset=utf-8').send(metrics()),
  )
}

function mountVersion(app: FastifyInstance, build: BuildInfo): void {
  const { component, version, commit, buildDate, goVersion, platform, tags } = build
  const body = { component, version, commit, buildDate, goVersion, platform, tags }
  app.get('/version', (_request, reply) => reply.header('cache-control', 'no-store').send(body))
}
