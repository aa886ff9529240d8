import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '@plat/core'
import { type Log, OVERLOAD_RETRY_MS, type OverloadState } from '@plat/process'
import { type BodyFault, readBody } from '../serve/body.ts'
import { faults, type HttpFault } from '../serve/errors.ts'
import type { Exchange, RawRoute } from '../serve/listen.ts'
import { CodedRefusalError, OAuthError, RefusalError } from './refusal.ts'
import type { TokenGuard } from './token-guard.ts'

/** Maximum size of a request body (docs/spec/broker-api.md, "Limits"). */
const MAX_BODY_BYTES = 64 * 1024
/** Deadline for a request body, in milliseconds. */
export const BODY_TIMEOUT_MS = 30_000
/** Minimum time between two log lines about a wrong token, in milliseconds: a flood must not fill the disk. */
const WARN_EVERY_MS = 1000

const JSON_TYPE = 'application/json; charset=utf-8'

/** One POST endpoint: maps the body to the response object. A thrown `RefusalError` is sent instead. */
export interface Endpoint {
  readonly path: string
  /** `token`: requires the service token, checked before the body is read. `request`: authorized by the content of the request. */
  readonly opensWith: 'token' | 'request'
  /** `json`: only `application/json`. `any`: the endpoint checks the content type itself, or reads no body. */
  readonly takes: 'json' | 'any'
  /** Shape of refusals: `{error: <text>}`, RFC 6749, or `{error: <code>, message, requestId}`. */
  readonly errors: 'text' | 'oauth' | 'coded'
  /** Refused while the service is overloaded. */
  readonly isNewWork?: true
  handle(body: Uint8Array, request: IncomingMessage): object | Promise<object>
}

export interface EndpointParts {
  readonly guard: TokenGuard
  /** Realm of the challenge for the service token. */
  readonly realm: string
  /** Shape of refusals for unknown paths. */
  readonly unknown: Endpoint['errors']
  readonly clock: Clock
  readonly log: Log
  /** Absent: never overloaded. */
  readonly overload?: Pick<OverloadState, 'active'>
}

/** Route for everything under `/v1/`. Raw, because minting is the broker's hot path and the API framework would add a fifth to the cost of a mint. */
export function endpointRoute(parts: EndpointParts, endpoints: readonly Endpoint[]): RawRoute {
  const router = new Router(parts, endpoints)
  return { prefix: '/v1/', handle: (exchange) => void router.answer(exchange) }
}

const STATUS_OF_BODY_FAULT: Readonly<Record<BodyFault['why'], HttpFault | null>> = {
  too_large: faults.tooLarge,
  chunks: faults.chunks,
  timeout: faults.timeout,
  encoding: faults.encoding,
  // No account is passed.
  memory: null,
  // The client has disconnected.
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
    const path = pathOf(request.url ?? '')
    const endpoint = this.#endpoints.get(path)
    if (endpoint === undefined) return refuse(response, refusalOf(faults.notFound, this.#parts.unknown), id)
    try {
      if (request.method !== 'POST') throw refusalOf(faults.method, endpoint.errors, { allow: 'POST' })
      if (endpoint.isNewWork && this.#parts.overload?.active) throw overloadedRefusal(endpoint.errors)
      if (endpoint.opensWith === 'token') this.#askForToken(request, path)
      if (endpoint.takes === 'json' && !isJson(request.headers['content-type'])) {
        throw refusalOf(faults.mediaType, endpoint.errors)
      }
      const { clock } = this.#parts
      const body = await readBody(request, { maxBytes: MAX_BODY_BYTES, timeoutMs: BODY_TIMEOUT_MS, clock })
      if ('kind' in body) {
        const fault = STATUS_OF_BODY_FAULT[body.why]
        if (fault === null) return void response.destroy()
        throw refusalOf(fault, endpoint.errors)
      }
      send(response, 200, await endpoint.handle(body, request))
    } catch (error) {
      if (error instanceof RefusalError) return refuse(response, inShape(error, endpoint.errors), id)
      this.#parts.log.error({ err: error, requestId: id }, 'a request failed')
      refuse(response, refusalOf(faults.internal, endpoint.errors), id)
    }
  }

  #askForToken(request: IncomingMessage, path: string): void {
    const { guard, realm, clock, log } = this.#parts
    if (guard(request.headers.authorization)) return
    if (clock.monotonic() - this.#warnedAt >= WARN_EVERY_MS) {
      this.#warnedAt = clock.monotonic()
      log.warn({ path }, `wrong token of ${realm}`)
    }
    throw new RefusalError(401, 'unauthorized', { 'www-authenticate': `Bearer realm="${realm}"` })
  }
}

function pathOf(url: string): string {
  const query = url.indexOf('?')
  return query === -1 ? url : url.slice(0, query)
}

/** Accepts `application/json`, with or without parameters. */
export function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true
  return contentType !== undefined && /^application\/json *(;|$)/i.test(contentType)
}

function refusalOf(
  { status, code, message }: HttpFault,
  errors: Endpoint['errors'],
  headers: Readonly<Record<string, string>> = {},
): RefusalError {
  if (errors === 'text') return new RefusalError(status, message, headers)
  if (errors === 'coded') return new CodedRefusalError(status, code, message, headers)
  return new OAuthError(status, status < 500 ? 'invalid_request' : 'server_error', message, headers)
}

/** Returns the refusal of new work while the service is overloaded. */
export function overloadedRefusal(errors: Endpoint['errors']): RefusalError {
  const headers = { 'retry-after': String(OVERLOAD_RETRY_MS / 1000) }
  const message = 'the service is overloaded: try again later'
  if (errors === 'oauth') return new OAuthError(503, 'temporarily_unavailable', message, headers)
  return refusalOf({ status: 503, code: 'overloaded', message }, errors, headers)
}

/** Converts refusals of shared code to the endpoint's shape, which its clients parse. */
function inShape(refusal: RefusalError, errors: Endpoint['errors']): RefusalError {
  const { status, message, headers } = refusal
  if (errors === 'text' && refusal instanceof OAuthError) return new RefusalError(status, message, headers)
  if (errors !== 'coded' || refusal instanceof CodedRefusalError) return refusal
  if (status === 401)
    return new CodedRefusalError(status, 'unauthorized', 'the bearer token is missing or wrong', headers)
  return new CodedRefusalError(status, status < 500 ? 'invalid_request' : 'unavailable', message, headers)
}

function refuse(response: ServerResponse, refusal: RefusalError, requestId: string): void {
  send(response, refusal.status, refusal.body(requestId), refusal.headers)
}

function send(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> | null = null,
): void {
  const text = JSON.stringify(body)
  if (headers !== null) for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  const length = String(Buffer.byteLength(text))
  // Node processes a list faster than an object.
  const head = ['content-type', JSON_TYPE, 'content-length', length, 'cache-control', 'no-store']
  response.writeHead(status, head)
  response.end(text)
}
