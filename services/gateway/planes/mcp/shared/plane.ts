import { type JsonObject, member } from '@plat/core'
import {
  ALL_SERVERS,
  type Call,
  type Denial,
  deny,
  type Identity,
  isDenial,
  type Parsed,
  type Reply,
  type RequestContext,
} from '../../../call/index.ts'
import { type Plane, PlaneAround, type Sink } from '../../../pipeline/index.ts'
import type { McpRequest } from '../message.ts'
import type { ServerPlane } from '../options.ts'
import { readShared, sealSession, type ToolPlace } from './address.ts'
import {
  ACCEPTED,
  beginSession,
  discovered,
  ENDED,
  eraMembers,
  initialized,
  instructionsFor,
  resultReply,
} from './answers.ts'
import { gatherList } from './gather.ts'
import { InFlightRequests, untilEnd } from './in-flight.ts'
import { listKind } from './lists.ts'
import { Naming } from './naming.ts'
import { NestedRequests } from './nested.ts'
import type { SharedPlaneOptions } from './options.ts'
import { type Client, levelMessage, ServerRequests, type Subscribed } from './requests.ts'
import { CallersServers } from './servers.ts'
import { UpstreamSessions } from './sessions.ts'
import { ShortenedNames } from './shortened.ts'
import { streamReply } from './stream.ts'
import { subscriptions } from './subscriptions.ts'

const NOT_FOUND = 404

/**
 * The plane of `/mcp`: one address for all servers of a token. A request for one server runs as that server's. For lists, handshakes and
 * notifications the gateway sends each server a nested request, which is governed and recorded as a request to that server's address.
 */
export function createSharedPlane(options: SharedPlaneOptions): Plane {
  return new SharedPlane(options)
}

class SharedPlane extends PlaneAround {
  readonly #options: SharedPlaneOptions
  readonly #plane: ServerPlane
  readonly #servers: CallersServers
  readonly #naming: Naming
  readonly #requests: ServerRequests
  readonly #shortened: ShortenedNames
  readonly #inFlight = new InFlightRequests()

  constructor(options: SharedPlaneOptions) {
    super(options.plane)
    const { clock, callable, separator, pools } = options
    this.#options = options
    this.#plane = options.plane
    this.#naming = new Naming(separator)
    this.#servers = new CallersServers(callable, this.#naming)
    const nested = new NestedRequests(options)
    const sessions = new UpstreamSessions(clock, pools?.of('mcp_sessions'))
    this.#requests = new ServerRequests({ ...options, nested, sessions })
    this.#shortened = new ShortenedNames(this.#naming)
  }

  override read(arrival: RequestContext, identity: Identity): Parsed | Denial | Promise<Parsed | Denial> {
    const toolOf = (place: ToolPlace) => this.#toolOf(place)
    return readShared({ reader: this.#plane, servers: this.#servers, naming: this.#naming, toolOf }, arrival, identity)
  }

  override forward(
    call: Call<'identity' | 'target' | 'hold'>,
    head: 'unsent' | 'sent',
  ): Denial | Promise<Reply | Denial> {
    const request = this.#plane.requestOf(call.wire)
    if (request === undefined) return deny('internal', 'the request was not read')
    if (call.server === ALL_SERVERS) return this.#respond(call, request)
    const over = this.#inFlight.add(call.facts.identity, request, call.server)
    const used = this.#requests.used(clientOf(call, request), call)
    const done = () => {
      over()
      used()
    }
    return this.#forward(call, request, head).then(
      (reply) => {
        if (!isDenial(reply) && reply.kind === 'frames') return { ...reply, frames: untilEnd(reply.frames, done) }
        done()
        return reply
      },
      (error) => {
        done()
        throw error
      },
    )
  }

  /** Forwards a request to its server, in the client's session there. A server that lost the session gets the request again in a new one. */
  async #forward(
    call: Call<'identity' | 'target' | 'hold'>,
    request: McpRequest,
    head: 'unsent' | 'sent',
  ): Promise<Reply | Denial> {
    const client = clientOf(call, request)
    const isBound = request.session !== null || request.era === 'modern' || request.shared?.session === null
    if (isBound) {
      const reply = await this.#plane.forward(call, head)
      // The server may know a task although it does not know the session in which it was created any more.
      if (request.task === undefined || request.era === 'modern' || !isLost(reply)) return reply
    }
    const opened = await this.#requests.session(client, call.server)
    if (opened === null || isDenial(opened)) return opened ?? deny('internal', 'the client has no session')
    this.#plane.useSession(call.wire, opened.session, opened.revision)
    const reply = await this.#plane.forward(call, head)
    if (opened.session === null || !isLost(reply)) return reply
    await this.#requests.forget(client, call.server, opened)
    const again = await this.#requests.session(client, call.server)
    if (again === null || isDenial(again)) return again ?? reply
    this.#plane.useSession(call.wire, again.session, again.revision)
    const second = await this.#plane.forward(call, head)
    const before = isDenial(reply) ? [] : reply.attempts
    return isDenial(second) ? second : { ...second, attempts: [...before, ...second.attempts] }
  }

  /** Responds to a request that no server receives as it is. */
  #respond(call: Call<'identity' | 'target'>, request: McpRequest): Denial | Promise<Reply | Denial> {
    const kind = listKind(request.method)
    if (kind !== null) {
      const client = clientOf(call, request)
      const shortened = this.#shortened.seenBy(call.facts.identity)
      const load = (page: Parameters<ServerRequests['page']>[1]) =>
        this.#requests.page(client, page, this.#options.listWaitMs)
      const parts = { ...this.#options, servers: this.#servers, naming: this.#naming }
      return gatherList(parts, { call, request, kind, load, ...(kind.entries === 'tools' && { shortened }) })
    }
    if (request.kind === 'listen') return Promise.resolve(this.#listen(call, request))
    if (request.method === 'subscriptions/listen') return Promise.resolve(this.#subscribe(call, request))
    if (request.kind !== 'request') return Promise.resolve(this.#accept(call, request))
    return request.method === 'server/discover'
      ? this.#discover(call, request)
      : Promise.resolve(this.#result(call, request))
  }

  #result(call: Call<'identity' | 'target'>, request: McpRequest): Reply | Denial {
    const { identity } = call.facts
    switch (request.method) {
      case 'initialize': {
        const session = beginSession(call.body?.value, this.#options.ids.uuid())
        if (isDenial(session)) return session
        const headers = { 'mcp-session-id': sealSession(this.#options.sealer, identity, session) }
        return resultReply(request, JSON.stringify(initialized(session, this.#instructions(call))), headers)
      }
      case 'logging/setLevel':
        return this.#setLevel(call, request)
      case 'ping':
        return resultReply(request, JSON.stringify(eraMembers(request, false)))
      default:
        return deny('unknown_method', `${request.method} is not a method of this address`)
    }
  }

  /** Offers revisions without sessions only if every server that responds speaks the client's: one that does not would be missing. */
  async #discover(call: Call<'identity' | 'target'>, request: McpRequest): Promise<Reply> {
    const client = clientOf(call, request)
    const servers = this.#servers.of(call.snapshot, call.facts.identity)
    const { listWaitMs } = this.#options
    const speaking = await Promise.all(servers.map(({ name }) => this.#requests.speaks(client, name, listWaitMs)))
    const result = discovered(request, this.#instructions(call), !speaking.includes(false))
    return resultReply(request, JSON.stringify(result))
  }

  #instructions({ snapshot, facts }: Call<'identity'>): string {
    return instructionsFor(this.#servers.of(snapshot, facts.identity), this.#options.separator)
  }

  /** Sets the level of servers with a session, and remembers it for those that get one later. */
  #setLevel(call: Call<'identity'>, request: McpRequest): Reply | Denial {
    const level = member(member(call.body?.value, 'params'), 'level')
    if (typeof level !== 'string') return deny('invalid_request', 'params.level must be a string')
    const client = clientOf(call, request)
    if (client.session !== null) {
      this.#requests.sessionsOf(client, client.session).level = level
      void this.#requests.notifyAll(client, levelMessage(level))
    }
    return resultReply(request, '{}')
  }

  #listen(call: Call<'identity' | 'target'>, request: McpRequest): Reply | Denial {
    const client = clientOf(call, request)
    if (client.session === null) return deny('internal', 'the client has no session')
    return streamReply(call, this.#requests.listen(client, client.session, this.#naming))
  }

  #subscribe(call: Call<'identity' | 'target'>, request: McpRequest): Reply | Denial {
    const client = clientOf(call, request)
    const servers = this.#servers.of(call.snapshot, call.facts.identity)
    const start = (at: Subscribed, sink: Sink) => this.#requests.subscribe(client, at, sink)
    const stream = subscriptions({ ...this.#options, servers, start }, request, call.body?.value)
    return isDenial(stream) ? stream : streamReply(call, stream)
  }

  /** Handles notifications, and the end of a session. They are passed on without waiting for the servers. */
  #accept(call: Call<'identity'>, request: McpRequest): Reply {
    const client = clientOf(call, request)
    const message: JsonObject = { jsonrpc: '2.0', method: request.method }
    if (request.kind === 'end') {
      this.#plane.leaveHeld(call, request)
      void this.#requests.end(client)
      return ENDED
    }
    if (request.method === 'notifications/cancelled') {
      this.#plane.leaveHeld(call, request)
      const server = this.#inFlight.serverOf(call.facts.identity, request, call.body?.value)
      const params = member(call.body?.value, 'params')
      if (server !== null) void this.#requests.notify(client, server, { ...message, params })
    } else if (request.method === 'notifications/roots/list_changed') void this.#requests.notifyAll(client, message)
    return ACCEPTED
  }

  async #toolOf(place: ToolPlace): Promise<string | Denial | null> {
    const { arrival, identity, session, revision, message, server } = place
    const client: Client = { arrival, identity, session, revision, meta: member(message.params, '_meta') }
    return await this.#shortened.toolOf(place, (page) =>
      this.#requests.page(client, { server, ...page }, this.#options.listWaitMs),
    )
  }
}

/** Returns true if the server does not know its session any more, or the name leads to another server now. Neither has processed the request. */
function isLost(reply: Reply | Denial): boolean {
  return isDenial(reply) ? reply.code === 'unknown_session' : reply.head.status === NOT_FOUND
}

function clientOf(call: Call<'identity'>, { shared, revision }: McpRequest): Client {
  const { facts, body } = call
  const meta = member(member(body?.value, 'params'), '_meta')
  return { arrival: call, identity: facts.identity, session: shared?.session ?? null, revision, meta }
}
