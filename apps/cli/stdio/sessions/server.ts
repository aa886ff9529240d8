import type { Ids } from '@plat/core'
import type { Failure, Reply } from '../http/reply.ts'
import { ID_PATH, literalAt, type Message, replaced } from '../message.ts'
import type { ServerSpec, ServerStatus } from '../protocol.ts'
import { Failures } from './failures.ts'
import { NOT_SHARED_METHODS, SHARED_HANDSHAKE, sharedHandshakeResponse } from './handshake.ts'
import type { Link } from './link.ts'
import type { Caller } from './processes.ts'
import { type BridgeParts, Running } from './running.ts'
import { type Session, Sessions } from './sessions.ts'

const METHOD_NOT_FOUND = -32601

/** A request of the gateway for one server. */
export interface ServerRequest {
  readonly caller: Caller
  /** Revision 2026-07-28 or later. */
  readonly isModern: boolean
  /** `Mcp-Session-Id`; null: none. */
  readonly session: string | null
  /** Null for GET and DELETE. */
  readonly message: Message | null
  /** Creates the reply; `headers` are those of a success. */
  reply(headers?: Readonly<Record<string, string>>): Reply
}

/** Keys of shared processes, which no session id equals. */
const SHARED = { legacy: 'shared legacy', modern: 'shared modern' } as const

/** One configured server: its sessions, and the processes that they use. */
export class StdioServer {
  readonly #parts: BridgeParts
  readonly #sessions: Sessions
  readonly #failures: Failures
  /** By session of the protocol; since revision 2026-07-28 by session of plat; a shared process by its era. */
  readonly #running = new Map<string, Running>()
  /** Every process that has not ended. */
  readonly #all = new Set<Running>()
  #spec: ServerSpec
  #failureCount = 0
  #lastFailure: string | null = null

  constructor(spec: ServerSpec, parts: BridgeParts & { readonly ids: Ids }) {
    this.#spec = spec
    this.#parts = { ...parts, log: parts.log.child({ server: spec.key }) }
    this.#failures = new Failures(parts.clock, parts.ids)
    this.#sessions = new Sessions(parts.ids, (session) => this.#forget(session))
  }

  get status(): ServerStatus {
    const links = [...this.#all].flatMap(({ link }) => (link === null || link.pid === null ? [] : [link]))
    const pids = links.flatMap(({ pid }) => (pid === null ? [] : [pid]))
    return {
      key: this.#spec.key,
      perSession: this.#spec.perSession,
      pids,
      sessions: this.#sessions.size,
      calls: links.reduce((sum, { calls }) => sum + calls, 0),
      failures: this.#failureCount,
      lastFailure: this.#lastFailure,
      problem: this.#spec.problem,
    }
  }

  /** Runs something else from now on. Sessions go on with new processes. */
  change(spec: ServerSpec): void {
    if (JSON.stringify(spec) === JSON.stringify(this.#spec)) return
    const isOtherKind = spec.perSession !== this.#spec.perSession
    this.#spec = spec
    this.#parts.log.info({}, 'server changed')
    for (const running of this.#all) void running.stop()
    this.#running.clear()
    if (isOtherKind) this.#sessions.clear()
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#all].map((running) => running.stop()))
  }

  /** Answers a POST. */
  async post(request: ServerRequest, message: Message): Promise<void> {
    if (request.isModern) return await this.#modern(request, message)
    if (message.method === 'initialize') return await this.#initialize(request, message)
    const session = this.#sessionOf(request)
    if (session === null) return request.reply().empty(request.session === null ? 400 : 404)
    if (message.kind !== 'request') return this.#notify(request, message, session)
    if (!this.#spec.perSession && NOT_SHARED_METHODS.has(message.method)) return refuseMethod(request.reply(), message)
    const reply = request.reply()
    const link = await this.#linkOf(session)
    if ('status' in link) reply.fail(link)
    else link.request(message, { owner: session.id, reply })
  }

  /** Answers a GET: the standalone stream of a session. */
  async listen(request: ServerRequest): Promise<void> {
    const session = this.#sessionOf(request)
    if (session === null) return request.reply().empty(request.isModern ? 405 : 404)
    const reply = request.reply()
    const link = await this.#linkOf(session)
    if ('status' in link) reply.fail(link)
    else link.listen(session.id, reply)
  }

  /** Answers a DELETE: ends a session. */
  end(request: ServerRequest): void {
    const session = this.#sessionOf(request)
    if (session === null) {
      request.reply().empty(404)
      return
    }
    this.#sessions.delete(session)
    this.#forget(session)
    request.reply().empty(204)
  }

  async #modern(request: ServerRequest, message: Message): Promise<void> {
    const { caller } = request
    const reply = request.reply()
    if (message.kind === 'response') return reply.empty(202)
    const key = this.#spec.perSession ? `modern ${caller.session}` : SHARED.modern
    if (message.kind === 'notification') {
      // Only cancellations mean anything; a process is not started for them.
      this.#running.get(key)?.link?.forward(message, caller.session)
      return reply.empty(202)
    }
    const link = await this.#run(key, { caller, isModern: true, handshake: null, completesHandshake: false }).ready
    if ('status' in link) reply.fail(link)
    else link.request(message, { owner: caller.session, reply })
  }

  async #initialize(request: ServerRequest, message: Message): Promise<void> {
    const session = this.#sessions.create(request.caller, message.bytes)
    const reply = request.reply({ 'mcp-session-id': session.id })
    const running = this.#spec.perSession
      ? this.#run(session.id, { caller: session.caller, isModern: false, handshake: null, completesHandshake: false })
      : this.#shared()
    const link = await running.ready
    if ('status' in link) {
      this.#sessions.delete(session)
      return reply.fail(link)
    }
    if (this.#spec.perSession) return link.request(message, { owner: session.id, reply })
    const id = literalAt(message.bytes, ID_PATH)
    if (running.handshake === null || id === null) return reply.fail({ status: 502, reason: 'it made no handshake' })
    reply.finish(replaced(sharedHandshakeResponse(running.handshake, message), ID_PATH, id))
  }

  #notify(request: ServerRequest, message: Message, session: Session): void {
    const isInitialized = message.method === 'notifications/initialized'
    if (isInitialized) session.isInitialized = true
    const { perSession } = this.#spec
    // Of a shared process sessions can only cancel: everything else concerns all of them.
    if (perSession || message.method === 'notifications/cancelled')
      this.#running.get(perSession ? session.id : SHARED.legacy)?.link?.forward(message, session.id)
    request.reply().empty(202)
  }

  #sessionOf({ session, caller, isModern }: ServerRequest): Session | null {
    return session === null || isModern ? null : this.#sessions.use(session, caller)
  }

  /** The process of a session. One that has ended is started again, with the handshake of the session. */
  async #linkOf(session: Session): Promise<Link | Failure> {
    if (!this.#spec.perSession) return await this.#shared().ready
    const known = this.#running.get(session.id)
    if (known !== undefined) return await known.ready
    if (session.handshake === null) {
      this.#sessions.delete(session)
      return { status: 404, reason: 'the session ended with its process' }
    }
    const { caller, handshake, isInitialized } = session
    return await this.#run(session.id, { caller, isModern: false, handshake, completesHandshake: isInitialized }).ready
  }

  #shared(): Running {
    const caller = this.#everyone
    return this.#run(SHARED.legacy, { caller, isModern: false, handshake: SHARED_HANDSHAKE, completesHandshake: true })
  }

  /** The caller of a shared process. */
  get #everyone(): Caller {
    const name = `server ${this.#spec.key}`
    return { agent: name, session: name }
  }

  /** Returns the process of a key; starts one if there is none. */
  #run(key: string, how: RunHow): Running {
    const known = this.#running.get(key)
    if (known !== undefined && (known.link === null || known.link.isUsable)) return known
    const running: Running = new Running({
      ...this.#parts,
      ...how,
      caller: this.#spec.perSession ? how.caller : this.#everyone,
      spec: this.#spec,
      failures: this.#failures,
      onOver: (over, failure) => this.#over(key, over, failure),
    })
    this.#running.set(key, running)
    this.#all.add(running)
    return running
  }

  #over(key: string, running: Running, failure: string | null): void {
    // It may be over while it is being created.
    queueMicrotask(() => {
      this.#all.delete(running)
      if (this.#running.get(key) === running) this.#running.delete(key)
    })
    if (failure === null) return
    this.#failureCount++
    this.#lastFailure = failure
  }

  #forget(session: Session): void {
    if (this.#spec.perSession) {
      const running = this.#running.get(session.id)
      this.#running.delete(session.id)
      void running?.stop()
      return
    }
    this.#running.get(SHARED.legacy)?.link?.drop(session.id)
  }
}

interface RunHow {
  readonly caller: Caller
  readonly isModern: boolean
  readonly handshake: Uint8Array | null
  readonly completesHandshake: boolean
}

function refuseMethod(reply: Reply, { bytes, method }: Message): void {
  const error = { code: METHOD_NOT_FOUND, message: `${method} is not offered by a server that sessions share` }
  const id = literalAt(bytes, ID_PATH) ?? Buffer.from('null')
  reply.finish(
    Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":'), id, Buffer.from(`,"error":${JSON.stringify(error)}}`)]),
  )
}
