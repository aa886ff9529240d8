import { type Clock, checkJson, JsonError, withoutMembers } from '@plat/core'
import { type ClientRequest, type Dialer, joinedBundles, type RequestHeaders, type TrustOptions } from '@plat/http'
import type { Log } from '@plat/process'
import {
  type BuiltinServer,
  type Call,
  type Credential,
  type Denial,
  deny,
  type Head,
  type Identity,
  isDenial,
  type Outcome,
  type Reply,
  type UpstreamAuth,
} from '../../call/index.ts'
import { EventFrames, type EventGate } from '../wire/events.ts'
import { GivenUp, UpstreamExchange, type UpstreamHead } from '../wire/exchange.ts'
import { failure } from '../wire/failure.ts'
import { isJsonType, isStreamType, STREAM_HEADERS } from '../wire/headers.ts'
import { member } from '../wire/json.ts'
import { messageEvent } from '../wire/sse.ts'
import { unusable } from '../wire/unusable.ts'
import { asksForWithheld, isAsk, spokenRevisions, trimAnnouncement } from './capabilities.ts'
import { isJsonObject, McpFrame } from './frames/frame.ts'
import { ReplySeals } from './frames/seals.ts'
import { upstreamHeaders } from './headers.ts'
import { type McpRequest, slice, withValue } from './message.ts'
import { bindingOf, type Sealer } from './seal/seal.ts'

/** Largest JSON answer of an upstream, in bytes. */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024
/** How long a call whose legacy client has left may still run at an upstream that keeps a session, in milliseconds. */
const RUNS_ON_MS = 300_000
/** Wait for the upstream to take the gateway's own answer to a server request, in milliseconds. */
const OWN_ANSWER_MS = 10_000
/** Server requests of one stream that the gateway answers itself; a server that goes on asking is cut off. */
const MAX_OWN_ANSWERS = 64

const UNAUTHORIZED = 401

/** JSON-RPC "method not found". */
const METHOD_NOT_FOUND = -32601

/** How a server is reached. */
export interface McpUpstream {
  /** `<ns>/<name>`; a static upstream has its bare name. */
  readonly key: string
  readonly url: string
  /** Wait for response heads; null: the gateway's default. */
  readonly timeoutSeconds: number | null
  /** PEM bundle trusted beside the system roots. */
  readonly caPEM: string | null
  /** Document 2, `protocolVersions`; null: not restricted. */
  readonly protocolVersions: readonly string[] | null
  /** What the gateway shows it. */
  readonly auth: UpstreamAuth
  /** Set: the gateway is the server itself, and nothing else here counts. */
  readonly builtin?: BuiltinServer | null
}

/** What the gateway shows its servers. */
export interface Credentials {
  /** A plain value when it is known; `upstream_credential` when there is none. */
  of(upstream: McpUpstream, identity: Identity): Credential | Denial | Promise<Credential | Denial>
  /** What to show instead of what the server has just refused; null: there is nothing else; a denial says what to do about it. */
  renewed(upstream: McpUpstream, identity: Identity, refused: Credential): Promise<Credential | Denial | null>
}

/** What forwarding needs beside the call. */
export interface Forwarder {
  readonly dialer: Pick<Dialer, 'client'>
  readonly credentials: Credentials
  readonly sealer: Sealer
  readonly clock: Clock
  readonly log: Log
  readonly upstreamTimeoutMs: number
  /** CA bundle for every server; null: none. */
  readonly extraCA: string | null
}

/** The parts of a URL that a request needs, and whom its connections believe. */
interface Place {
  readonly origin: string
  /** Path and query. */
  readonly path: string
  /** Undefined: the system's roots. One object for as long as it says the same: the dialer knows it again. */
  readonly trust: TrustOptions | undefined
  readonly clientCert: Credential['clientCert']
}

/** Taken apart once: an upstream lives as long as the registry that holds it, a certificate until it is replaced. */
const places = new WeakMap<McpUpstream, Place>()

function placeOf(upstream: McpUpstream, clientCert: Credential['clientCert'], extraCA: string | null): Place {
  const known = places.get(upstream)
  if (known !== undefined && known.clientCert === clientCert) return known
  const { protocol, host, pathname, search } = new URL(upstream.url)
  const caPEM = joinedBundles([upstream.caPEM, extraCA])
  const trusts = caPEM !== null || clientCert !== null
  const trust = { ...(caPEM !== null && { caPEM }), ...(clientCert !== null && { clientCert }) }
  // The origin stands in each record: joined, it lies in one piece, unlike the one that a URL tells.
  const origin = [protocol, host].join('//')
  const place = { origin, path: pathname + search, trust: trusts ? trust : undefined, clientCert }
  places.set(upstream, place)
  return place
}

/** Where a request goes, and what it shows there. */
export interface Way {
  readonly upstream: McpUpstream
  readonly credential: Credential
}

/** Sends one request to a server. `headers` gets what the server is shown. */
export function openExchange(
  { dialer, extraCA, upstreamTimeoutMs }: Forwarder,
  { upstream, credential }: Way,
  { method, headers, body }: Pick<ClientRequest, 'method' | 'body'> & { readonly headers: RequestHeaders },
): UpstreamExchange {
  const { origin, path, trust } = placeOf(upstream, credential.clientCert, extraCA)
  const client = dialer.client(origin, 'mcp', trust)
  Object.assign(headers, credential.headers)
  const seconds = upstream.timeoutSeconds
  const headersTimeoutMs = seconds === null ? upstreamTimeoutMs : seconds * 1000
  return new UpstreamExchange(client, { method, path, headers, body, headersTimeoutMs, pauseTimeoutMs: 0 })
}

/** One call on its way through. */
export interface Passage {
  readonly call: Call<'identity' | 'target' | 'hold'>
  readonly request: McpRequest
  readonly upstream: McpUpstream
  /** A wait has opened an event stream already. */
  readonly sent: boolean
}

/**
 * Sends one request upstream and hands its answer out in frames. Bytes that nobody changed arrive as they were sent, in both
 * directions; the caller's credentials, cookies and `x-plat-*` headers never go up, the upstream's cookies and challenges never come down.
 */
export class Forwarding implements EventListenerObject, EventGate<McpFrame> {
  readonly #forwarder: Forwarder
  readonly #passage: Passage
  readonly #seals: ReplySeals
  readonly #origin: string
  #credential: Credential
  /** The attempt whose credential the server refused. */
  #refused: Outcome['attempts'][number] | null = null
  #exchange: UpstreamExchange | null = null
  #answered = 0

  /** `credential`: what the server is shown first. */
  constructor(forwarder: Forwarder, passage: Passage, credential: Credential) {
    this.#forwarder = forwarder
    this.#passage = passage
    this.#credential = credential
    this.#origin = placeOf(passage.upstream, credential.clientCert, forwarder.extraCA).origin
    this.#seals = new ReplySeals(forwarder.sealer, passage.call, passage.request)
  }

  async run(): Promise<Reply | Denial> {
    const { clock } = this.#forwarder
    const { call } = this.#passage
    const started = clock.monotonic()
    const exchange = this.#send()
    try {
      const head = await exchange.head
      const attempt = { endpoint: this.#origin, status: head.status, ms: clock.monotonic() - started }
      const renews = head.status === UNAUTHORIZED && this.#refused === null ? await this.#renews() : false
      if (isDenial(renews)) return this.#giveUp(renews)
      if (renews) {
        this.#refused = attempt
        this.done()
        exchange.abort('what it was shown was refused')
        return await this.run()
      }
      const attempts = this.#refused === null ? [attempt] : [this.#refused, attempt]
      const refusal = unusable(call.server, head)
      if (refusal !== null) return this.#giveUp(refusal)
      if (isStream(head)) {
        const told = { status: head.status, headers: this.#withSession({ ...STREAM_HEADERS }, head) }
        return { kind: 'frames', head: told, attempts, frames: new EventFrames(exchange, this) }
      }
      const whole = exchange.readAll(MAX_ANSWER_BYTES)
      const bytes = whole instanceof Promise ? await whole : whole
      if (bytes === null) return this.#giveUp(deny('upstream_error', `${call.server} sent an answer that is too large`))
      const frames = this.#jsonFrames(head, bytes)
      this.done()
      return 'kind' in frames ? frames : { kind: 'frames', head: this.#replyHead(head), attempts, frames }
    } catch (error) {
      return this.#giveUp(faultOf(call.server, error))
    }
  }

  /** A server that refuses what it was shown has done nothing yet, so the same request may go again with a newer credential. */
  async #renews(): Promise<boolean | Denial> {
    const { call, upstream } = this.#passage
    const next = await this.#forwarder.credentials.renewed(upstream, call.facts.identity, this.#credential)
    if (next === null || isDenial(next)) return next ?? false
    this.#credential = next
    return true
  }

  /** A frame of the upstream's stream as it goes on; null: it was for the gateway. Throws what ends the stream. */
  pass(event: Uint8Array): McpFrame | null {
    const frame = McpFrame.event(event)
    const passed = frame.json === null ? frame : this.#message(frame, frame.json)
    return passed === null ? null : this.#seals.event(passed)
  }

  #message(frame: McpFrame, json: Uint8Array): McpFrame | null {
    if (!isJsonObject(json)) throw new GivenUp('the server sent what is no message')
    if (frame.role === 'request') return this.#asked(frame, json)
    if (frame.role !== 'final') return this.#seals.cancelled(frame, json)
    if (this.#asksForWithheld(frame)) throw new GivenUp('the server asks for what it was not offered')
    // A replayed list has passed no filter: the client must ask for it again.
    if (this.#passage.request.kind === 'listen' && isList(frame)) return null
    return this.#final(frame, json)
  }

  #asksForWithheld(frame: McpFrame): boolean {
    const { call, request } = this.#passage
    return asksForWithheld(frame, request.era === 'modern' ? call.body?.value : null)
  }

  /** The call was stopped. */
  handleEvent(): void {
    this.stop()
  }

  /**
   * Nobody reads the answer any more. From 2026-07-28 on a client cancels by leaving; before, leaving means nothing, so a call
   * to an upstream that keeps a session runs on, unread and for a limited time.
   */
  stop(): void {
    this.done()
    const { call, request } = this.#passage
    const exchange = this.#exchange
    if (exchange === null) return
    const runsOn = call.signal.reason === 'client' && request.kind === 'request' && request.session !== null
    if (!runsOn) {
      exchange.abort(String(call.signal.reason ?? 'the answer is not wanted'))
      return
    }
    const cancel = this.#forwarder.clock.after(RUNS_ON_MS, () => exchange.abort('it ran on for too long'))
    exchange.discard(cancel)
  }

  /** Each message of MCP stands alone, so a stream may end after any of them. */
  ended(): void {
    this.done()
  }

  /** The exchange is over: nothing listens to the call any more. */
  done(): void {
    this.#passage.call.signal.removeEventListener('abort', this)
  }

  #giveUp(denial: Denial): Denial {
    this.done()
    this.#exchange?.abort(denial.reason)
    return denial
  }

  #send(): UpstreamExchange {
    const { call, request } = this.#passage
    const body = call.body === null ? null : bodyFor(request, call.body.bytes)
    const exchange = this.#open(call.wire.method, upstreamHeaders(call.wire.headers, request), body)
    this.#exchange = exchange
    if (call.signal.aborted) this.stop()
    else call.signal.addEventListener('abort', this)
    return exchange
  }

  #open(method: string, headers: RequestHeaders, body: Uint8Array | null): UpstreamExchange {
    const way = { upstream: this.#passage.upstream, credential: this.#credential }
    return openExchange(this.#forwarder, way, { method, headers, body })
  }

  /** What the client hears of the upstream's head: its type, its session under seal, when to come again. Nothing else. */
  #replyHead(head: UpstreamHead): Head {
    const { status, headers } = head
    const told: Record<string, string> = {}
    if (typeof headers['content-type'] === 'string') told['content-type'] = headers['content-type']
    if (typeof headers['retry-after'] === 'string') told['retry-after'] = headers['retry-after']
    if (typeof headers.allow === 'string') told.allow = headers.allow
    return { status, headers: this.#withSession(told, head) }
  }

  /** The upstream's session id under seal: no other session can use it, and none at another server. */
  #withSession(told: Record<string, string>, { headers }: UpstreamHead): Record<string, string> {
    const id = headers['mcp-session-id']
    const { call, request } = this.#passage
    if (typeof id !== 'string' || request.method !== 'initialize') return told
    const binding = bindingOf('mcp-session', call.facts.identity, call.server)
    const sealed = this.#forwarder.sealer.seal(binding, { id, target: call.facts.target.key })
    return { ...told, 'mcp-session-id': sealed }
  }

  /** The frames of an answer that came whole: one, or none where there is no body. */
  #jsonFrames(head: UpstreamHead, bytes: Uint8Array): readonly McpFrame[] | Denial {
    const { call, request, sent } = this.#passage
    const failed = head.status >= 400
    if (failed && !isJsonType(head.headers)) return sent ? unusableAnswer(call.server) : [McpFrame.body('error', bytes)]
    if (bytes.length === 0) return request.kind === 'request' ? unusableAnswer(call.server) : []
    const frame = McpFrame.body(failed ? 'error' : 'final', bytes)
    const answers = isJsonType(head.headers) && isJsonObject(bytes) && frame.saidRole === 'final'
    if (!answers) return unusableAnswer(call.server)
    if (this.#asksForWithheld(frame)) return deny('upstream_error', `${call.server} asks for what it was not offered`)
    const told = this.#final(frame, bytes)
    return [sent ? McpFrame.event(messageEvent(told.raw)) : told]
  }

  /** An answer as it goes on; to the handshake or to a discovery it announces only what the gateway carries. */
  #final(frame: McpFrame, json: Uint8Array): McpFrame {
    const { request, upstream } = this.#passage
    if (request.method !== 'initialize' && request.method !== 'server/discover') return this.#seals.result(frame, json)
    const trimmed = trimAnnouncement(json, frame.value, spokenRevisions(upstream.protocolVersions))
    return trimmed === json ? frame : frame.withJson(trimmed)
  }

  /**
   * A server asks the client for something: the question goes on under a sealed id. Pings and what no server may ask for are answered
   * here. From 2026-07-28 on a stream holds no requests, and there is nothing to answer them with.
   */
  #asked(frame: McpFrame, json: Uint8Array): McpFrame | null {
    if (this.#passage.request.era === 'modern') return null
    if (!isAsk(member(frame.value, 'method'))) return this.#answerServer(frame, json)
    return this.#seals.asked(frame, json, this.#forwarder.clock.now())
  }

  #answerServer(frame: McpFrame, json: Uint8Array): null {
    const { call, request } = this.#passage
    this.#answered++
    if (this.#answered > MAX_OWN_ANSWERS) throw new GivenUp('the server keeps asking for what it was not offered')
    const { accept: _, ...headers } = upstreamHeaders(call.wire.headers, {
      ...request,
      method: 'response',
      lastEvent: null,
    })
    const answer = this.#open(
      'POST',
      { ...headers, accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      serverAnswer(json, frame.value),
    )
    const cancel = this.#forwarder.clock.after(OWN_ANSWER_MS, () => answer.abort('the upstream takes no answer'))
    answer.discard(cancel)
    return null
  }
}

/** The body as the server knows it: without what is not carried, and with its own ids, cursors and states. */
function bodyFor({ withheld, replaced }: McpRequest, bytes: Uint8Array): Uint8Array {
  const carried = withoutMembers(bytes, withheld)
  return replaced.reduce((body, { path, with: value }) => withValue(body, path, value), carried)
}

/** `-32601`, or the empty result of a ping, under the server's own request id. Throws a `JsonError`. */
function serverAnswer(json: Uint8Array, message: unknown): Uint8Array {
  checkJson(json)
  const id = slice(json, ['id'])
  const method = String(member(message, 'method'))
  const error = { code: METHOD_NOT_FOUND, message: `${method} is not offered to servers` }
  const outcome = method === 'ping' ? '"result":{}' : `"error":${JSON.stringify(error)}`
  return Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":'), id ?? Buffer.from('null'), Buffer.from(`,${outcome}}`)])
}

export function isStream({ status, headers }: UpstreamHead): boolean {
  return status < 300 && isStreamType(headers)
}

/** A list of tools, by its result. */
function isList(frame: McpFrame): boolean {
  return Array.isArray(member(member(frame.value, 'result'), 'tools'))
}

export function unusableAnswer(server: string): Denial {
  return deny('upstream_error', `${server} sent an answer that is no JSON-RPC message`)
}

/** An answer whose numbers or names cannot be read strictly is as unusable as none. */
export function faultOf(server: string, error: unknown): Denial {
  return error instanceof JsonError ? unusableAnswer(server) : failure(server, error)
}
