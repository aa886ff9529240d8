import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Clock, type PoolObserver, reasonOf, type SharedPool, watchedPool } from '@plat/core'
import { type BodyFault, type Exchange, readBody } from '@plat/http'
import type { Ledgers } from '@plat/ledger'
import type { Log } from '@plat/process'
import { type ResourceApi, type RestCaller, RestError, type RestResponse, refusal } from '@plat/resources/rest'
import { type AdminAuthentication, AdminError, homeOf, may, type Principal } from '../../admin/index.ts'

/** Maximum body size, in bytes: an object of the maximum size, with its earlier state as annotation of `kubectl apply`. */
const BODY_MAX_BYTES = 2 * 1024 * 1024

/** Deadline of a body, in milliseconds. */
const BODY_TIMEOUT_MS = 30_000

/** Prefix of a Kubernetes warning: code 299, no agent. */
const WARNING = '299 - '

export interface ServerOptions {
  readonly api: ResourceApi
  readonly authenticate: AdminAuthentication
  /** Record changes durably before they are made; default: afterwards. */
  readonly recordsFirst?: boolean
  readonly ledgers: Ledgers
  readonly clock: Clock
  readonly log: Log
  readonly observer?: PoolObserver | undefined
}

/** Serves requests of the resource API on a listener: authentication, body limits, record, response. */
export class Server {
  readonly #options: ServerOptions
  /** One controller per watch. */
  readonly #watches = new Set<AbortController>()
  readonly #pool: SharedPool

  constructor(options: ServerOptions) {
    this.#options = options
    this.#pool = watchedPool({ name: 'resource_watches', observer: options.observer })
  }

  /** Ends every watch; clients reconnect elsewhere. */
  leave(): void {
    for (const watch of this.#watches) watch.abort()
  }

  /** Responds to one request; never rejects. */
  async serve(exchange: Exchange): Promise<void> {
    const left = new AbortController()
    exchange.response.once('close', () => left.abort())
    try {
      await this.#answer(exchange, left)
    } catch (error) {
      this.#options.log.error({ err: error, requestId: exchange.id }, 'a response of the resource API was interrupted')
      exchange.response.destroy()
    }
  }

  async #answer(exchange: Exchange, left: AbortController): Promise<void> {
    const principal = await this.#identify(exchange)
    if (principal instanceof AdminError) {
      const isThrottled = principal.code === 'rate_limited'
      if (!isThrottled) exchange.response.setHeader('www-authenticate', 'Bearer realm="plat-admin"')
      send(exchange, refusal(isThrottled ? new RestError(429, principal.message) : new RestError(401, 'Unauthorized')))
      return
    }
    const { request } = exchange
    const body = request.method === 'GET' ? NO_BODY : await this.#read(exchange)
    if ('kind' in body) {
      if (body.why !== 'aborted') send(exchange, refusal(faultOf(body)))
      return
    }
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://localhost')
    if (!(await this.#recordIntent(exchange, pathname, { principal, query }))) {
      send(exchange, refusal(new RestError(503, 'the change is not made: the audit ledger cannot be written')))
      return
    }
    const answer = await this.#options.api.handle({
      method: request.method ?? 'GET',
      path: pathname,
      query,
      accept: request.headers.accept ?? '',
      contentType: request.headers['content-type'] ?? '',
      body,
      caller: callerOf(principal),
      signal: left.signal,
    })
    await this.#record(exchange, pathname, { principal, answer })
    if (isStream(answer.body)) await this.#stream(exchange, answer, { lines: answer.body, left, by: principal.by })
    else send(exchange, answer)
  }

  async #identify({ request }: Exchange): Promise<Principal | AdminError> {
    try {
      return await this.#options.authenticate(request.headers.authorization, request.socket.remoteAddress ?? '')
    } catch (error) {
      if (error instanceof AdminError) return error
      throw error
    }
  }

  #read({ request }: Exchange): Promise<Uint8Array | BodyFault> {
    return readBody(request, { maxBytes: BODY_MAX_BYTES, timeoutMs: BODY_TIMEOUT_MS, clock: this.#options.clock })
  }

  /** Returns false if the intent is not durable, and the change must not be made. */
  async #recordIntent(
    { id, request: { method = 'GET' } }: Exchange,
    path: string,
    { principal, query }: { readonly principal: Principal; readonly query: URLSearchParams },
  ): Promise<boolean> {
    const { recordsFirst = false, ledgers, log } = this.#options
    if (!recordsFirst || method === 'GET' || query.get('dryRun') === 'All') return true
    try {
      const rec = { action: method, path, by: principal.by, requestId: id, phase: 'intent' }
      await ledgers.of(homeOf(principal)).append({ kind: 'admin', ...rec })
      return true
    } catch (error) {
      log.error(
        { action: method, path, error: reasonOf(error) },
        'the record of an admin action could not be written before the action',
      )
      return false
    }
  }

  /** Records a change or attempt with its result, before the response. */
  async #record(
    { id }: Exchange,
    path: string,
    { principal, answer }: { readonly principal: Principal; readonly answer: RestResponse },
  ): Promise<void> {
    if (answer.change === null) return
    const { log, ledgers } = this.#options
    try {
      const rec = { action: answer.change, path, by: principal.by, status: answer.status, requestId: id }
      await ledgers.of(homeOf(principal)).append({ kind: 'admin', ...rec })
    } catch (error) {
      log.error({ action: answer.change, error: reasonOf(error) }, 'an admin action could not be recorded')
    }
  }

  /** A watch lasts until its timeout, until the client leaves, or until shutdown. */
  async #stream(
    exchange: Exchange,
    { status, contentType }: RestResponse,
    { lines, left, by }: { readonly lines: AsyncIterable<string>; readonly left: AbortController; readonly by: string },
  ): Promise<void> {
    const { response } = exchange
    const bound = this.#pool.acquire(by)
    if (bound !== null) {
      const whose = bound === 'share' ? 'you have' : 'there are'
      send(exchange, refusal(new RestError(429, `${whose} too many open watches: close one or try again later`)))
      return
    }
    this.#watches.add(left)
    response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' })
    response.flushHeaders()
    try {
      await pipeline(Readable.from(lines), response)
    } catch (error) {
      // Clients may disconnect at any time.
      if (!left.signal.aborted) throw error
    } finally {
      this.#watches.delete(left)
      this.#pool.release(by)
    }
  }
}

const NO_BODY = new Uint8Array(0)

function isStream(body: RestResponse['body']): body is AsyncIterable<string> {
  return Symbol.asyncIterator in body
}

/** `viewer` reads and `admin` writes, in all namespaces or one. */
function callerOf(principal: Principal): RestCaller {
  return {
    name: principal.by,
    groups: principal.groups,
    may: (what, namespace) => may(principal, what === 'read' ? 'viewer' : 'admin', namespace),
  }
}

function faultOf({ why }: BodyFault): RestError {
  if (why === 'too_large') return new RestError(413, `the body has more than ${BODY_MAX_BYTES} bytes`)
  if (why === 'chunks') return new RestError(400, 'the body comes in too many small chunks')
  if (why === 'encoding') return new RestError(415, 'the body must not be encoded: send it as it is')
  return new RestError(408, 'the body did not arrive in time')
}

function send({ response }: Exchange, { status, contentType, warnings, body }: RestResponse): void {
  const text = JSON.stringify(body)
  if (warnings.length > 0) response.setHeader('warning', warnings.map(warningOf))
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  })
  response.end(text)
}

/** Quoted visible ASCII; other characters become question marks. */
function warningOf(text: string): string {
  return `${WARNING}"${text.replace(/[^ -~]/g, '?').replace(/["\\]/g, '\\$&')}"`
}
