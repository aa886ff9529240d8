import type { Clock } from '@plat/core'
import type { Log } from '@plat/process'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BrokerGuard } from './broker-guard.ts'

/** A refusal of a broker-token endpoint: `{error: <text>}` with a status (document 1, "Errors"). */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, error: string) {
    super(error)
    this.status = status
  }
}

/** One broker-token endpoint: the body's bytes in, the answer's object out. A thrown `Refusal` is the answer instead. */
export interface Endpoint {
  readonly path: string
  handle(body: Uint8Array): object | Promise<object>
}

/** One line about a wrong broker token in this time, in milliseconds: a flood must not fill the disk. */
const WARN_EVERY_MS = 1000

const NO_BODY = new Uint8Array(0)

/** Mounts endpoints that take the broker token, asked before the body is read, and a JSON object. */
export function mountEndpoints(
  app: FastifyInstance,
  { guard, clock, log }: { guard: BrokerGuard; clock: Clock; log: Log },
  endpoints: readonly Endpoint[],
): void {
  // The endpoint parses the bytes itself, so that bad JSON is told in the contract's words.
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  let warnedAt = Number.NEGATIVE_INFINITY
  const onRequest = (request: FastifyRequest, reply: FastifyReply, next: () => void) => {
    if (guard(request.headers.authorization)) return next()
    if (clock.monotonic() - warnedAt >= WARN_EVERY_MS) {
      warnedAt = clock.monotonic()
      log.warn({ path: request.routeOptions.url, remote: request.ip }, 'wrong broker token')
    }
    send(reply.code(401).header('www-authenticate', 'Bearer realm="plat-identity"'), { error: 'unauthorized' })
  }
  for (const endpoint of endpoints) {
    app.post(endpoint.path, { onRequest }, async (request, reply) => {
      try {
        const body = request.body instanceof Uint8Array ? request.body : NO_BODY
        return send(reply, await endpoint.handle(body))
      } catch (error) {
        if (error instanceof Refusal) return send(reply.code(error.status), { error: error.message })
        throw error
      }
    })
  }
}

/** Serialised here, once: the framework's own way adds a copy. */
function send(reply: FastifyReply, body: object): FastifyReply {
  return reply
    .header('cache-control', 'no-store')
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(body))
}
