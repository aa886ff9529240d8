import type { ServerResponse } from 'node:http'
import type { Clock } from '@plat/core'
import { type BodyFault, type Exchange, faults, type HttpFault, type RawRoute, readBody } from '@plat/http'
import type { Log } from '@plat/process'
import type { BrokerGuard } from './broker-guard.ts'

/** Document 1, "Limits": size of a request body. */
const MAX_BODY_BYTES = 64 * 1024
/** How long a body may take to come in, in milliseconds. */
export const BODY_TIMEOUT_MS = 30_000
/** One line about a wrong broker token in this time, in milliseconds: a flood must not fill the disk. */
const WARN_EVERY_MS = 1000

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

export interface EndpointParts {
  readonly guard: BrokerGuard
  readonly clock: Clock
  readonly log: Log
}

/**
 * Everything under `/v1/`: endpoints that take a POST with the broker token, which is asked before the body is read, and a
 * JSON object. A raw route, because minting is the broker's hot path and the API framework costs a fifth of a mint.
 */
export function endpointRoute(parts: EndpointParts, endpoints: readonly Endpoint[]): RawRoute {
  const router = new Router(parts, endpoints)
  return { prefix: '/v1/', handle: (exchange) => void router.answer(exchange) }
}

const STATUS_OF_BODY_FAULT: Readonly<Record<BodyFault['why'], HttpFault | null>> = {
  too_large: faults.tooLarge,
  timeout: faults.timeout,
  encoding: faults.encoding,
  // Nobody is left to answer.
  aborted: null,
}

class Router {
  readonly #parts: EndpointParts
  readonly #endpoints: ReadonlyMap<string, Endpoint>
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(parts: EndpointParts, endpoints: readonly Endpoint[]) {
    this.#parts = parts
    this.#endpoints = new Map(endpoints.map((endpoint) => [endpoint.path, endpoint]))
  }

  async answer({ id, request, response }: Exchange): Promise<void> {
    try {
      const path = pathOf(request.url ?? '')
      const endpoint = this.#endpoints.get(path)
      if (endpoint === undefined) return refuse(response, faults.notFound)
      if (request.method !== 'POST') return refuse(response.setHeader('allow', 'POST'), faults.method)
      if (!this.#parts.guard(request.headers.authorization)) return this.#unauthorized(response, path)
      if (!isJson(request.headers['content-type'])) return refuse(response, faults.mediaType)
      const { clock } = this.#parts
      const body = await readBody(request, { maxBytes: MAX_BODY_BYTES, timeoutMs: BODY_TIMEOUT_MS, clock })
      if ('kind' in body) return refuse(response, STATUS_OF_BODY_FAULT[body.why])
      send(response, 200, await endpoint.handle(body))
    } catch (error) {
      if (error instanceof Refusal) return send(response, error.status, { error: error.message })
      this.#parts.log.error({ err: error, requestId: id }, 'a request failed')
      refuse(response, faults.internal)
    }
  }

  #unauthorized(response: ServerResponse, path: string): void {
    const { clock, log } = this.#parts
    if (clock.monotonic() - this.#warnedAt >= WARN_EVERY_MS) {
      this.#warnedAt = clock.monotonic()
      log.warn({ path }, 'wrong broker token')
    }
    send(response.setHeader('www-authenticate', 'Bearer realm="plat-identity"'), 401, { error: 'unauthorized' })
  }
}

function pathOf(url: string): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

/** `application/json`, with or without parameters. */
function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true
  return contentType !== undefined && /^application\/json *(;|$)/i.test(contentType)
}

function refuse(response: ServerResponse, fault: HttpFault | null): void {
  if (fault === null) response.destroy()
  else send(response, fault.status, { error: fault.message })
}

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  })
  response.end(text)
}
