import type { Clock } from '@plat/core'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { AdminError } from '../../admin/index.ts'
import { readReport } from './report.ts'
import type { Reporters } from './reporters.ts'
import type { UsageReports } from './usage-reports.ts'

/** Path of the endpoint, on the main listener. */
const PATH = '/v1/usage/sandbox'
/** Maximum size of a report, in bytes. */
const MAX_REPORT_BYTES = 16 * 1024

export interface UsageRoute {
  readonly desk: UsageReports
  readonly reporters: Reporters
  readonly clock: Clock
}

/** `POST /v1/usage/sandbox` (docs/spec/gateway.md, "Endpoints"): authenticates the reporter before it reads the body. */
export function mountUsage(app: FastifyInstance, { desk, reporters, clock }: UsageRoute): void {
  app.register(async (scope) => {
    const who = new WeakMap<FastifyRequest, string>()
    scope.setErrorHandler((error, request, reply) => {
      if (!(error instanceof AdminError)) throw error
      if (error.code === 'unauthenticated') reply.header('www-authenticate', 'Bearer realm="plat-sandbox-usage"')
      return reply.code(error.status).send({ error: error.code, message: error.message, requestId: request.id })
    })
    scope.route({
      method: 'POST',
      url: PATH,
      bodyLimit: MAX_REPORT_BYTES,
      async onRequest(request, reply) {
        reply.header('cache-control', 'no-store')
        who.set(request, await reporters.identify(request.headers.authorization))
      },
      handler(request) {
        const by = who.get(request)
        if (by === undefined) throw new Error('the reporter was not authenticated')
        return desk.take(readReport(request.body, clock.now()), by)
      },
    })
  })
}
