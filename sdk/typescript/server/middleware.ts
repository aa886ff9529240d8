import type { IncomingMessage, ServerResponse } from 'node:http'
import type { SessionClaims } from '@plat/tokens'
import { withTraceparent } from '../call/trace.ts'
import { PlatError } from '../error.ts'
import { TokenRefusedError } from './keys.ts'
import type { RequestFacts, TokenVerifier } from './verifier.ts'

export interface MiddlewareOptions {
  readonly verifier: TokenVerifier
  /** Public URL of the server without a path, for proofs: `https://notes.example.com`. */
  readonly url: string
}

/** The response to a request without a valid token. */
interface Refusal {
  readonly status: 401
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const callers = new WeakMap<object, SessionClaims>()

/**
 * Returns the verified caller of a request: of `request` in Express and Fastify, of `c.req.raw` in Hono.
 *
 * @throws PlatError if the request did not pass the middleware.
 * @example
 * app.get('/reports', (request, response) => response.json(reportsOf(callerOf(request).user)))
 */
export function callerOf(request: object): SessionClaims {
  const caller = callers.get(request)
  if (caller === undefined) throw new PlatError('no verified caller: the request did not pass the middleware')
  return caller
}

/**
 * Middleware for Express. Refuses requests without a valid token with 401; the trace context of a request continues in its calls.
 *
 * @example
 * app.use(expressMiddleware({ verifier, url: 'https://notes.example.com' }))
 */
export function expressMiddleware(options: MiddlewareOptions) {
  return (
    request: IncomingMessage & { readonly originalUrl?: string },
    response: ServerResponse,
    next: (error?: unknown) => void,
  ): void => {
    const { method = 'GET', originalUrl, url = '/', headers } = request
    verified(options, { method, url: originalUrl ?? url, headers }).then((result) => {
      if ('body' in result) {
        response.writeHead(result.status, result.headers).end(result.body)
        return
      }
      callers.set(request, result)
      withTraceparent(firstOf(headers.traceparent), next)
    }, next)
  }
}

/** The parts of Fastify's objects that the hook uses. */
interface FastifyRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}
interface FastifyReply {
  code(status: number): FastifyReply
  headers(values: Readonly<Record<string, string>>): FastifyReply
  send(body: string): unknown
}

/**
 * An `onRequest` hook for Fastify, like {@link expressMiddleware}.
 *
 * @example
 * app.addHook('onRequest', fastifyHook({ verifier, url: 'https://notes.example.com' }))
 */
export function fastifyHook(options: MiddlewareOptions) {
  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    verified(options, request).then(
      (result) => {
        if ('body' in result) {
          reply.code(result.status).headers(result.headers).send(result.body)
          return
        }
        callers.set(request, result)
        withTraceparent(firstOf(request.headers.traceparent), done)
      },
      (error: unknown) => done(error instanceof Error ? error : new PlatError('the verifier failed')),
    )
  }
}

/**
 * Middleware for Hono, like {@link expressMiddleware}; for every server whose requests are those of `fetch`.
 *
 * @example
 * app.use(honoMiddleware({ verifier, url: 'https://notes.example.com' }))
 * app.get('/reports', (c) => c.json(reportsOf(callerOf(c.req.raw).user)))
 */
export function honoMiddleware(options: MiddlewareOptions) {
  return async (
    context: { readonly req: { readonly raw: Request } },
    next: () => Promise<void>,
  ): Promise<Response | undefined> => {
    const { raw } = context.req
    const { pathname } = new URL(raw.url)
    const result = await verified(options, { method: raw.method, url: pathname, headers: raw.headers })
    if ('body' in result) return new Response(result.body, { status: result.status, headers: { ...result.headers } })
    callers.set(raw, result)
    await withTraceparent(raw.headers.get('traceparent'), next)
    return undefined
  }
}

/** The caller of a request, or the response to send. `url`: the path of the request. */
async function verified(options: MiddlewareOptions, { method, url, headers }: RequestFacts) {
  try {
    const [path = '/'] = url.split('?', 1)
    return await options.verifier.verifyRequest({ method, url: options.url.replace(/\/$/, '') + path, headers })
  } catch (error) {
    if (error instanceof TokenRefusedError) return refusalOf(error)
    throw error
  }
}

function refusalOf({ reason, message }: TokenRefusedError): Refusal {
  // RFC 6750, section 3.1: without a token the challenge has no error.
  const code = reason === 'missing' ? '' : ', error="invalid_token"'
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return {
    status: 401,
    headers: { ...headers, 'www-authenticate': `Bearer realm="plat"${code}` },
    body: JSON.stringify({ error: 'invalid_token', error_description: message }),
  }
}

function firstOf(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
