import type { Ids } from '@plat/core'
import { type Dialer, isUpgradable, takeUpgrade } from '@plat/http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type WebSocket, WebSocketServer } from 'ws'
import { AdminError, type AdminRoutes, type Caller, parameter } from '../../admin/index.ts'
import { sandboxUrl, type Tenancy } from '../../call/index.ts'
import type { ViewMode } from './endings.ts'
import { fetchPage, pageUrl, sendPage } from './page.ts'
import type { ViewedSession, ViewName, ViewRecords } from './records.ts'
import type { LiveViews } from './views.ts'

/** Longest message of a viewer, in bytes, and its parts. */
const MAX_MESSAGE_BYTES = 64 * 1024
const MAX_FRAGMENTS = 256
/** Waiting time for the close of a viewer, in milliseconds. */
const CLOSE_MS = 1_000
/** RFC 6455, section 4.1: 16 bytes. */
const WEB_SOCKET_KEY = /^[A-Za-z0-9+/]{22}==$/

export interface LiveViewRoutesOptions {
  readonly endpointTemplate: string
  readonly views: LiveViews
  readonly records: ViewRecords
  /** Returns a session that has called; null if none has this name. */
  readonly find: (name: Omit<ViewedSession, 'user'>) => Promise<ViewedSession | null>
  readonly hasStopped: (session: ViewedSession) => boolean
  readonly tenancy: Tenancy
  readonly dialer: Pick<Dialer, 'fetchBytes'>
  readonly ids: Ids
}

/** `/v1/sessions/:id/view/…`: the view of a sandbox as a WebSocket of RFB (RFC 6143), and its pages. */
export function createLiveViewRoutes(options: LiveViewRoutesOptions): AdminRoutes {
  const routes = new LiveViewRoutes(options)
  return {
    mount(context) {
      context.on('GET /v1/sessions/:id/view/watch', (...parts) => routes.view('watch', ...parts))
      context.on('GET /v1/sessions/:id/view/control', (...parts) => routes.view('control', ...parts))
      context.on('GET /v1/sessions/:id/view/page/*', (...parts) => routes.page(...parts))
    },
  }
}

/** The published types lack two of these. */
const SERVER_OPTIONS = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: MAX_MESSAGE_BYTES,
  maxFragments: MAX_FRAGMENTS,
  autoPong: false,
  closeTimeout: CLOSE_MS,
  handleProtocols: (protocols: ReadonlySet<string>) => (protocols.has('binary') ? 'binary' : false),
} as const

class LiveViewRoutes {
  readonly #options: LiveViewRoutesOptions
  readonly #server = new WebSocketServer(SERVER_OPTIONS)

  constructor(options: LiveViewRoutesOptions) {
    this.#options = options
  }

  /** A request for a WebSocket begins a view; any other one returns that it may begin. */
  async view(mode: ViewMode, request: FastifyRequest, reply: FastifyReply, caller: Caller): Promise<unknown> {
    const { of, endpoint: url } = await this.#viewed(request, caller, '/websockify')
    if (!isUpgradable(request.raw)) return { mode, protocol: 'rfb' }
    demandWebSocket(request, caller)
    const { views, records } = this.#options
    const place = views.acquire(caller, of)
    try {
      const name = this.#nameOf(mode, of, request, caller)
      await records.begin(name)
      const viewer = this.#upgraded(request)
      if (viewer !== null) views.begin({ viewer, mode, url, name, caller, place })
      else {
        place.release()
        await records.end(name, { result: 'closed' })
      }
    } catch (error) {
      place.release()
      throw error
    }
    return reply.hijack()
  }

  /** A file that the sandbox serves beside its view. */
  async page(request: FastifyRequest, reply: FastifyReply, caller: Caller): Promise<unknown> {
    const { of, endpoint } = await this.#viewed(request, caller, '/')
    const url = pageUrl(endpoint, pathIn(request))
    const { views, records, dialer } = this.#options
    const place = views.acquire(caller, of)
    const name = this.#nameOf('page', of, request, caller)
    try {
      await records.begin(name, { path: url.pathname })
      const page = await fetchPage(url, caller.by, dialer).catch(async (error: unknown) => {
        await views.countPage(name, 'unreachable', 0)
        throw error
      })
      await views.countPage(name, 'closed', page.bytes.length)
      return sendPage(reply, page)
    } finally {
      place.release()
    }
  }

  /** Returns the session that a request names. Throws AdminError unless the caller may view it, it lives, and its name leads to a sandbox. */
  async #viewed({ params }: FastifyRequest, caller: Caller, path: string) {
    const { tenancy, find, hasStopped, endpointTemplate } = this.#options
    const [namespace = '', agent = '', session = '', ...rest] = parameter(params, 'id').split('/')
    if (session === '' || rest.length > 0)
      throw new AdminError('invalid_request', 'id: must be <namespace>/<agent>/<session> with %2F for each slash')
    const tenant = tenancy.of(namespace)
    const of = caller.sees(namespace, tenant) ? await find({ tenant, namespace, agent, session }) : null
    if (of === null) throw new AdminError('not_found', 'no session with this ID has called this gateway')
    caller.demand(namespace, tenant)
    if (hasStopped(of)) throw new AdminError('revoked', 'the session is revoked, suspended or has ended')
    const endpoint = sandboxUrl(endpointTemplate, of, path)
    if (endpoint === null) throw new AdminError('unknown_session', 'the names of this session lead to no sandbox')
    return { of, endpoint }
  }

  #nameOf(mode: ViewName['mode'], of: ViewedSession, { id: requestId }: FastifyRequest, { by }: Caller): ViewName {
    return { id: this.#options.ids.uuid(), by, requestId, mode, of }
  }

  /** Null: the connection is gone. */
  #upgraded({ raw }: FastifyRequest): WebSocket | null {
    const taken = takeUpgrade(raw)
    if (taken === null) return null
    // Called before it returns, if at all.
    const opened: WebSocket[] = []
    this.#server.handleUpgrade(raw, taken.socket, taken.head, (viewer) => opened.push(viewer))
    return opened[0] ?? null
  }
}

/** Throws for a handshake that is not valid, and for one that a page of another origin could have made with the cookie of a person. */
function demandWebSocket({ headers }: FastifyRequest, caller: Caller): void {
  if (headers['sec-websocket-version'] !== '13' || !WEB_SOCKET_KEY.test(headers['sec-websocket-key'] ?? ''))
    throw new AdminError('invalid_request', 'must be a WebSocket handshake of version 13 (RFC 6455)')
  if (caller.session !== null && headers.origin === undefined)
    throw new AdminError('forbidden', 'this request does not come from a page of the console')
}

/** The path below `page/` with its query, as it was sent. */
function pathIn({ raw: { url = '' } }: FastifyRequest): string {
  return url.slice(url.indexOf('/view/page/') + '/view/page/'.length)
}
