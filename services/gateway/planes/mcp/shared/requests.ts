import { Readable } from 'node:stream'
import { type Clock, isObject, type JsonObject, member } from '@plat/core'
import { type CallSignal, type Denial, deny, type Identity, isDenial } from '../../../call/index.ts'
import type { NestedCall, Sink } from '../../../pipeline/index.ts'
import { messageEvent } from '../../wire/sse.ts'
import { isModernRevision, KNOWN_REVISIONS } from '../classify.ts'
import type { SharedSession } from '../message.ts'
import { bindingOf, type Sealed, type Sealer } from '../seal/seal.ts'
import type { CollectedMessage } from './collect.ts'
import type { ServerPage } from './cursor.ts'
import type { ListKind } from './lists.ts'
import type { Naming } from './naming.ts'
import type { Arrival, NestedRequests, ServerRequest, ServerResponse } from './nested.ts'
import type { ClientSessions, UpstreamSession, UpstreamSessions } from './sessions.ts'
import { MergedStream } from './stream.ts'

/** Limits of the handshake with a server, and of messages whose response is not relayed. */
const HANDSHAKE = { ms: 30_000, maxBytes: 1024 * 1024 }
/** The largest page of a server's list, in bytes. */
const MAX_PAGE_BYTES = 32 * 1024 * 1024
const NOT_FOUND = 404
const SERVER_ERROR = 500

/** A client at the address of all servers, with the request that it has sent. */
export interface Client {
  readonly arrival: Arrival
  readonly identity: Identity
  readonly session: SharedSession | null
  readonly revision: string
  /** `params._meta` of the request, which requests of revision 2026-07-28 repeat. */
  readonly meta: unknown
}

type ListPage = ServerPage & { readonly kind: ListKind }

/** A subscription at one server. */
export interface Subscribed {
  readonly server: string
  readonly prefix: string
  readonly message: object
}

export interface RequestsOptions {
  readonly nested: NestedRequests
  readonly sessions: UpstreamSessions
  readonly sealer: Sealer
  readonly clock: Clock
}

/** Requests to the servers of a client, with the sessions at servers that they need. */
export class ServerRequests {
  readonly #nested: NestedRequests
  readonly #sessions: UpstreamSessions
  readonly #sealer: Sealer
  readonly #clock: Clock

  constructor({ nested, sessions, sealer, clock }: RequestsOptions) {
    this.#nested = nested
    this.#sessions = sessions
    this.#sealer = sealer
    this.#clock = clock
    // The token may have expired, which must not keep a session open at its server.
    sessions.onForgotten = (own) => {
      const identity = { ...own.identity, expiresAt: Number.POSITIVE_INFINITY }
      void this.#endAll({ identity, arrival: NO_ARRIVAL }, own)
    }
  }

  /** Resolves to the client's session at a server, which is opened at its first use; null: the client has no session. Never rejects. */
  async session(client: Client, server: string): Promise<UpstreamSession | Denial | null> {
    const { identity, session } = client
    if (session === null) return null
    const own = this.#sessions.of(identity, session)
    return await this.#sessions.at(own, server, () => this.#open(client, session, own, server))
  }

  /** Forgets a session that its server does not know any more. */
  async forget({ identity, session }: Client, server: string, lost: UpstreamSession): Promise<void> {
    if (session !== null) await this.#sessions.forget(this.#sessions.of(identity, session), server, lost)
  }

  sessionsOf({ identity }: Client, session: SharedSession): ClientSessions {
    return this.#sessions.of(identity, session)
  }

  /** Notes a call of the client, whose sessions stay open while it lasts. Returns a function to call at its end. */
  used({ identity, session }: Client, call: object): () => void {
    if (session === null) return () => {}
    const own = this.#sessions.of(identity, session)
    own.calls.add(call)
    return () => own.calls.delete(call)
  }

  /** Requests one page of a list, within `ms`. Resolves to null if the server has no such list. Never rejects. */
  async page(client: Client, page: ListPage, ms: number): Promise<CollectedMessage | Denial | null> {
    const over = Promise.withResolvers<Denial>()
    const cancel = this.#clock.after(ms, () => over.resolve(this.#late(client, page, ms)))
    const until = this.#clock.monotonic() + ms
    const again = async () => await this.#page(client, page, until)
    const message = await Promise.race([again().then((first) => (first === 'lost' ? again() : first)), over.promise])
    cancel()
    return message === 'lost' ? deny('upstream_error', `${page.server} keeps no sessions`) : message
  }

  /** A server that is still starting, such as a program that is being downloaded, is announced to the client when its session is open. */
  #late({ identity, session }: Client, { server, kind }: ListPage, ms: number): Denial {
    const starting = session === null ? undefined : this.#sessions.of(identity, session).starting.get(server)
    if (starting === undefined) return deny('upstream_timeout', `${server} did not respond within ${ms} ms`)
    if (kind.changed !== undefined) starting.add(kind.changed)
    const next = kind.changed === undefined ? 'list again later' : `list again later, or at ${kind.changed}`
    return deny('upstream_timeout', `${server} did not respond within ${ms} ms and may still be starting: ${next}`)
  }

  /** Resolves to `lost` if the server does not know its session any more. */
  async #page(
    client: Client,
    { server, cursor, kind }: ListPage,
    until: number,
  ): Promise<CollectedMessage | Denial | 'lost' | null> {
    const { arrival, identity, revision, meta } = client
    const opened = await this.session(client, server)
    if (isDenial(opened)) return opened
    if (opened !== null && member(opened.capabilities, kind.capability) === undefined) return null
    const isModern = isModernRevision(revision)
    const params = { ...(cursor !== null && { cursor }), ...(isModern && { _meta: withoutProgress(meta) }) }
    const response = await this.#nested.fetch(
      {
        ...{ arrival, identity, server, method: 'POST', shared: null, session: opened?.session ?? null },
        headers: {
          'mcp-protocol-version': opened?.revision ?? revision,
          ...(isModern && { 'mcp-method': kind.method }),
        },
        message: { jsonrpc: '2.0', id: LIST_ID, method: kind.method, params },
      },
      { ms: Math.max(0, until - this.#clock.monotonic()), maxBytes: MAX_PAGE_BYTES },
    )
    const isLost = isDenial(response) ? response.code === 'unknown_session' : response.status === NOT_FOUND
    if (isLost && opened !== null && opened.session !== null) {
      await this.forget(client, server, opened)
      return 'lost'
    }
    if (isDenial(response)) return response.code === 'unknown_method' ? null : response
    return response.message ?? deny('upstream_error', `${server} responded with HTTP status ${response.status}`)
  }

  /** Resolves to whether a server speaks the client's revision, which has no sessions; null if it does not respond. Never rejects. */
  async speaks({ arrival, identity, revision, meta }: Client, server: string, ms: number): Promise<boolean | null> {
    const method = 'server/discover'
    const response = await this.#nested.fetch(
      {
        ...{ arrival, identity, server, method: 'POST', shared: null, session: null },
        headers: { 'mcp-protocol-version': revision, 'mcp-method': method },
        message: { jsonrpc: '2.0', id: LIST_ID, method, params: { _meta: withoutProgress(meta) } },
      },
      { ms, maxBytes: HANDSHAKE.maxBytes },
    )
    if (isDenial(response)) return response.code === 'unsupported_version' ? false : null
    if (response.status >= SERVER_ERROR) return null
    const versions = member(response.message?.value.result, 'supportedVersions')
    return Array.isArray(versions) && versions.includes(revision)
  }

  /** Returns the streams of the servers at which the client has a session, and of those at which one is opened later. */
  listen(client: Client, session: SharedSession, naming: Pick<Naming, 'prefixOf'>): MergedStream {
    const own = this.#sessions.of(client.identity, session)
    const opened = new Map<string, UpstreamSession>()
    const stream = new MergedStream(this.#clock, (server, sink) => {
      const at = opened.get(server)
      if (at === undefined || at.session === null) return null
      const shared = { session, prefix: naming.prefixOf(server), shownName: null }
      return this.#nested.start({ ...inSession(client, server, at, null), method: 'GET', shared }, sink)
    })
    const announce = () => {
      for (const method of own.changed)
        void stream.send(messageEvent(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method }))))
      own.changed.clear()
    }
    const see = (server: string, at: UpstreamSession) => {
      opened.set(server, at)
      stream.add(server)
      announce()
    }
    own.listeners.add(see)
    for (const [server, opening] of own.servers) void opening.then((at) => isDenial(at) || see(server, at))
    stream.whenOver(() => own.listeners.delete(see))
    announce()
    return stream
  }

  /** Starts the subscription of a client of revision 2026-07-28 at one server. */
  subscribe({ arrival, identity, revision }: Client, { server, prefix, message }: Subscribed, sink: Sink): NestedCall {
    const shared = { session: null, prefix, shownName: null }
    const headers = { 'mcp-protocol-version': revision, 'mcp-method': 'subscriptions/listen' }
    return this.#nested.start(
      { arrival, identity, server, method: 'POST', shared, session: null, headers, message },
      sink,
    )
  }

  /** Sends a message to a server in a session that is open; its response is not relayed. Never rejects. */
  async notify(client: Client, server: string, message: object | null): Promise<void> {
    const { identity, session } = client
    const opening = session === null ? undefined : this.#sessions.of(identity, session).servers.get(server)
    const opened = await opening
    if (opened === undefined || isDenial(opened)) return
    await this.#nested.fetch(inSession({ ...client, arrival: detached(client) }, server, opened, message), HANDSHAKE)
  }

  /** Sends a message to all servers at which the client has a session. Never rejects. */
  async notifyAll(client: Client, message: object): Promise<void> {
    const { identity, session } = client
    if (session === null) return
    const { servers } = this.#sessions.of(identity, session)
    await Promise.all([...servers.keys()].map((server) => this.notify(client, server, message)))
  }

  /** Ends the client's session and those at its servers. Never rejects. */
  async end(client: Client): Promise<void> {
    const { identity, session } = client
    const own = session === null ? null : this.#sessions.end(identity, session)
    if (own !== null) await this.#endAll({ identity, arrival: detached(client) }, own)
  }

  async #endAll(caller: Pick<Client, 'arrival' | 'identity'>, { servers }: ClientSessions): Promise<void> {
    const ends = servers.entries().map(async ([server, opening]) => {
      const opened = await opening
      if (isDenial(opened) || opened.session === null) return
      await this.#nested.fetch(inSession(caller, server, opened, null), HANDSHAKE)
    })
    await Promise.all(ends)
  }

  async #open(
    client: Client,
    { revision, client: params }: SharedSession,
    own: ClientSessions,
    server: string,
  ): Promise<UpstreamSession | Denial> {
    // Requests of the client wait for the same session, so it does not end with the one that opens it.
    const lasting = { ...client, arrival: detached(client) }
    const { identity, arrival } = lasting
    const handshake = {
      jsonrpc: '2.0',
      id: 'plat-initialize',
      method: 'initialize',
      params: { protocolVersion: revision, ...params },
    }
    const response = await this.#nested.fetch(
      { arrival, identity, server, method: 'POST', shared: null, session: null, headers: {}, message: handshake },
      HANDSHAKE,
    )
    const opened = isDenial(response) ? response : this.#opened(identity, server, response)
    if (isDenial(opened)) return opened
    await this.#nested.fetch(inSession(lasting, server, opened, INITIALIZED), HANDSHAKE)
    if (own.level !== null && member(opened.capabilities, 'logging') !== undefined)
      await this.#nested.fetch(inSession(lasting, server, opened, levelMessage(own.level)), HANDSHAKE)
    return opened
  }

  #opened(identity: Identity, server: string, { headers, message }: ServerResponse): UpstreamSession | Denial {
    const result = message?.value.result
    const revision = member(result, 'protocolVersion')
    const capabilities = member(result, 'capabilities')
    if (typeof revision !== 'string' || !isObject(capabilities))
      return deny('upstream_error', `${server} did not accept a session`)
    if (!KNOWN_REVISIONS.includes(revision) || isModernRevision(revision))
      return deny('upstream_error', `${server} speaks no revision that the gateway can use in a session`)
    const id = headers['mcp-session-id']
    const session = id === undefined ? null : this.#sealer.open(bindingOf('mcp-session', identity, server), id)
    return { session, revision, capabilities: namesOf(capabilities) }
  }
}

const LIST_ID = 'plat-list'
const INITIALIZED = { jsonrpc: '2.0', method: 'notifications/initialized' }

/** Returns the request that sets a server's log level. */
export function levelMessage(level: string): object {
  return { jsonrpc: '2.0', id: 'plat-level', method: 'logging/setLevel', params: { level } }
}

/** Only the names of capabilities are kept: what they hold is as large as the server wants. */
function namesOf(capabilities: JsonObject): JsonObject {
  const known = ['tools', 'prompts', 'resources', 'logging', 'completions', 'tasks']
  return Object.fromEntries(known.filter((name) => capabilities[name] !== undefined).map((name) => [name, {}]))
}

function inSession(
  { arrival, identity }: Pick<Client, 'arrival' | 'identity'>,
  server: string,
  { session, revision }: { readonly session: Sealed | null; readonly revision: string },
  message: object | null,
): ServerRequest {
  const method = message === null ? 'DELETE' : 'POST'
  const headers = { 'mcp-protocol-version': revision }
  return { arrival, identity, server, method, headers, message, session, shared: null }
}

/** Returns the request without its end: for work that others wait for as well. Its limits are those of the work. */
function detached({ arrival: { wire } }: Client): Client['arrival'] {
  return { wire, signal: NEVER, retain: () => true, isDetached: true }
}

const NEVER: CallSignal = { aborted: false, reason: null, addEventListener() {}, removeEventListener() {} }

/** The request of no client. */
const NO_ARRIVAL: Arrival = {
  wire: { method: 'DELETE', path: '/mcp', query: '', headers: {}, body: Readable.from([]), remote: '' },
  signal: NEVER,
  retain: () => true,
  isDetached: true,
}

function withoutProgress(meta: unknown): object {
  const { progressToken: _, ...rest }: JsonObject = isObject(meta) ? meta : {}
  return rest
}
