import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { parseStrict } from '@plat/core'
import type { Log } from '@plat/process'
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import { joinedBody } from './body.ts'
import { faults, type HttpFault, type RenderFault } from './errors.ts'

interface ApiOptions {
  readonly mount: ((app: FastifyInstance) => void | Promise<void>) | undefined
  readonly log: Log
  readonly maxBodyBytes: number
  readonly renderFault: RenderFault
}

interface Api {
  handle(request: IncomingMessage, response: ServerResponse, id: string): void
  close(): Promise<void>
}

/** Longest part of a path that is a parameter: the name of a session, of which a SPIFFE ID has 2,048 bytes, with its agent and namespace. */
const MAX_PARAM_CHARS = 4096

type RawHandler = (request: IncomingMessage, response: ServerResponse) => void

/** Serves every route that is not raw: Fastify on the existing server, with strict JSON and this package's error bodies. */
export async function createApi(server: Server, options: ApiOptions): Promise<Api> {
  let handle: RawHandler = () => {}
  const ids = new WeakMap<IncomingMessage, string>()
  const app = Fastify({
    serverFactory: (handler) => {
      handle = handler
      return server
    },
    genReqId: (request) => ids.get(request) ?? '',
    bodyLimit: options.maxBodyBytes,
    // The listener answers parse errors. The framework's handler would use its own error body, or cut off ours.
    clientErrorHandler: () => {},
    routerOptions: { ignoreTrailingSlash: false, maxParamLength: MAX_PARAM_CHARS },
    // A malformed path (bad percent-encoding) gets this package's error body.
    frameworkErrors: (error, request, reply) => answer(reply, faultOf(error), request.id, options.renderFault),
  })
  takeStrictJson(app)
  renderErrors(app, options)
  const routes = methodsByPath(app)
  await options.mount?.(app)
  await app.after()
  refuseOtherMethods(app, routes, options.renderFault)
  await app.ready()
  return {
    handle(request, response, id) {
      ids.set(request, id)
      handle(request, response)
    },
    close: () => app.close(),
  }
}

/** Parses JSON as the contract requires: no duplicate members, no trailing data, bounded depth. No other content type is accepted by default. */
function takeStrictJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (_request: FastifyRequest, body: Buffer) =>
    parseStrict(body),
  )
  app.addHook('onRequest', async (request) => {
    const coding = request.headers['content-encoding']
    if (coding !== undefined && coding !== 'identity') throw new RefusedError(faults.encoding)
  })
  // The framework keeps a list of all chunks of a body.
  app.addHook('preParsing', async (request, _reply, payload) => {
    const { 'content-length': length, 'transfer-encoding': coding } = request.headers
    const hasBody = coding !== undefined || (length !== undefined && length !== '0')
    return hasBody ? joinedBody(request.raw, () => new RefusedError(faults.chunks)) : payload
  })
}

class RefusedError extends Error {
  readonly fault: HttpFault
  constructor(fault: HttpFault) {
    super(fault.message)
    this.fault = fault
  }
}

function renderErrors(app: FastifyInstance, { log, renderFault }: ApiOptions): void {
  app.setNotFoundHandler((request, reply) => answer(reply, faults.notFound, request.id, renderFault))
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const fault = faultOf(error)
    if (fault.status >= 500)
      log.error({ err: error, requestId: request.id, path: request.routeOptions.url }, 'a request failed')
    return answer(reply, fault, request.id, renderFault)
  })
}

function answer(reply: FastifyReply, fault: HttpFault, id: string, render: RenderFault): FastifyReply {
  return reply.code(fault.status).header('cache-control', 'no-store').send(render(fault, id))
}

/** Converts an error of the framework or of a parser to a fault. Unknown errors become 500; their text is not sent. */
function faultOf(error: FastifyError | Error): HttpFault {
  if (error instanceof RefusedError) return error.fault
  if (error.name === 'JsonError')
    return { ...faults.malformed, message: `The body is not strict JSON: ${error.message}` }
  const status = 'statusCode' in error ? error.statusCode : undefined
  if (status === 413) return faults.tooLarge
  if (status === 415) return faults.mediaType
  if (status === 400) return { ...faults.malformed, message: error.message }
  return faults.internal
}

/** Methods of each API path, filled as routes are added. */
function methodsByPath(app: FastifyInstance): Map<string, Set<string>> {
  const routes = new Map<string, Set<string>>()
  app.addHook('onRoute', (route) => {
    const methods = routes.get(route.url) ?? new Set()
    for (const method of [route.method].flat()) methods.add(method)
    routes.set(route.url, methods)
  })
  return routes
}

/** Answers 405 with `Allow` to a known path with another method, before any body is read. */
function refuseOtherMethods(app: FastifyInstance, routes: Map<string, Set<string>>, render: RenderFault): void {
  for (const [url, methods] of [...routes]) {
    const others = app.supportedMethods.filter((method) => !methods.has(method))
    if (others.length === 0 || url.includes('*')) continue
    const allow = [...methods].sort().join(', ')
    app.route({
      method: others,
      url,
      onRequest: async (request, reply) => answer(reply.header('allow', allow), faults.method, request.id, render),
      handler: async () => undefined,
    })
  }
}
