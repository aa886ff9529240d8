import { withoutMembers } from '@plat/core'
import type { RequestHeaders } from '@plat/http'
import {
  type Call,
  type Credential,
  callerOf,
  type Denial,
  deny,
  type Head,
  isDenial,
  type Outcome,
  type Reply,
  type StreamEnd,
  UpstreamError,
} from '../../../call/index.ts'
import { EventFrames, type EventGate } from '../../wire/events.ts'
import { AbandonedError, type UpstreamExchange, type UpstreamHead, wholeBodyDenial } from '../../wire/exchange.ts'
import { isJsonType, isStreamType, STREAM_HEADERS } from '../../wire/headers.ts'
import { member } from '../../wire/json.ts'
import { failure, unusable } from '../../wire/refusal.ts'
import { errorMessage } from '../answer.ts'
import { asksForWithheld, isAsk, spokenRevisions, trimAnnouncement } from '../capabilities.ts'
import type { McpFrame } from '../frames/frame.ts'
import { InvalidResponseError, McpResponse } from '../frames/response.ts'
import { ReplySeals } from '../frames/seals.ts'
import { upstreamHeaders } from '../headers.ts'
import { awaitedIdOf, type McpRequest, requestMethodOf, slice, withValue } from '../message.ts'
import { bindingOf } from '../seal/seal.ts'
import { type Forwarder, type McpUpstream, openExchange, originOfUpstream, timeoutOf } from './open.ts'

/** Largest JSON answer of an upstream, in bytes. */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024
/** Wait for the upstream to take the gateway's own answer to a server request, in milliseconds. */
const OWN_ANSWER_MS = 10_000
/** Server requests of one stream that the gateway answers itself; a server that goes on asking is cut off. */
const MAX_OWN_ANSWERS = 64

const UNAUTHORIZED = 401

/** JSON-RPC "method not found". */
const METHOD_NOT_FOUND = -32601

/** One call on its way through. */
export interface McpForward {
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
  readonly #passage: McpForward
  readonly #seals: ReplySeals
  readonly #response: McpResponse
  /** Method of the request that the response is for: that of the first request where a stream is resumed. */
  readonly #method: string
  readonly #origin: string
  #credential: Credential
  /** The attempt whose credential the server refused. */
  #refused: Outcome['attempts'][number] | null = null
  #exchange: UpstreamExchange | null = null
  #answered = 0

  /** `credential`: what the server is shown first. */
  constructor(forwarder: Forwarder, passage: McpForward, credential: Credential) {
    this.#forwarder = forwarder
    this.#passage = passage
    this.#credential = credential
    this.#origin = originOfUpstream(forwarder, { upstream: passage.upstream, credential })
    const { request } = passage
    this.#method = requestMethodOf(request)
    this.#response = new McpResponse({ id: awaitedIdOf(request), method: this.#method, era: request.era })
    this.#seals = new ReplySeals(forwarder.sealer, passage.call, request)
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
        if (!mayStream(this.#passage.request)) return this.#giveUp(unusableAnswer(call.server))
        const told = { status: head.status, headers: this.#withSession({ ...STREAM_HEADERS }, head) }
        return { kind: 'frames', head: told, attempts, frames: new EventFrames(exchange, this) }
      }
      const whole = exchange.readAll({ maxBytes: MAX_ANSWER_BYTES, account: call, deadline: this.#deadline })
      const bytes = whole instanceof Promise ? await whole : whole
      if (!(bytes instanceof Uint8Array)) return this.#giveUp(wholeBodyDenial(call.server, bytes))
      const frames = this.#bodyFrames(head, bytes)
      this.done()
      if ('kind' in frames) return frames
      return { kind: 'frames', head: this.#replyHead(head, frames.length > 0), attempts, frames }
    } catch (error) {
      this.done()
      exchange.abort('the response cannot be read')
      return this.#giveUp(faultOf(call.server, error))
    }
  }

  get #deadline() {
    const { clock, upstreamTimeoutMs } = this.#forwarder
    return { clock, ms: timeoutOf(this.#passage.upstream, upstreamTimeoutMs) }
  }

  /** A server that refuses what it was shown has done nothing yet, so the same request may go again with a newer credential. */
  async #renews(): Promise<boolean | Denial> {
    const { call, upstream } = this.#passage
    const next = await this.#forwarder.credentials.renewed(upstream, call.facts.identity, this.#credential)
    if (next === null || isDenial(next)) return next ?? false
    this.#credential = next
    return true
  }

  /** The frame that is relayed for an event; null where it was for the gateway. Throws an `UpstreamError` that ends the stream. */
  pass(event: Uint8Array): McpFrame | null {
    const frame = this.#response.event(event)
    const passed = frame.json === null ? frame : this.#message(frame, frame.json)
    return passed === null ? null : this.#seals.event(passed)
  }

  #message(frame: McpFrame, json: Uint8Array): McpFrame | null {
    if (frame.role === 'request') return this.#asked(frame, json)
    if (frame.role !== 'final') return this.#seals.cancelled(frame, json)
    if (this.#asksForWithheld(frame)) throw new AbandonedError('the server asks for what it was not offered')
    // A resumed list has passed no filter, so the client must request it again.
    if (this.#passage.request.kind === 'listen' && this.#method === 'tools/list') return this.#unfiltered(frame)
    return this.#final(frame, json)
  }

  #unfiltered(frame: McpFrame): McpFrame {
    const { call, request } = this.#passage
    const denial = deny('upstream_error', 'a list of tools cannot be resumed: request it again')
    return frame.withJson(errorMessage(call.id, request, denial))
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
    this.#forwarder.abandoned.add(call.facts.identity, exchange)
  }

  /**
   * A stream may end after its response. Before that only where the client can fetch the rest: on a legacy stream that sent an event
   * id, and on one that was resumed by such an id.
   */
  ended(): StreamEnd {
    this.done()
    if (this.#response.complete) return undefined
    if (this.#seals.resumable) return 'suspended'
    throw new AbandonedError('the stream ended before the response')
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
    const { upstream, call } = this.#passage
    const way = { upstream, credential: this.#credential, caller: callerOf(call.facts.identity) }
    return openExchange(this.#forwarder, way, { method, headers, body })
  }

  /** What the client gets of the upstream's head: its type, its session under seal, `Retry-After` and `Allow`. Nothing else. */
  #replyHead(head: UpstreamHead, hasBody: boolean): Head {
    const { status, headers } = head
    const told: Record<string, string> = {}
    if (hasBody && typeof headers['content-type'] === 'string') told['content-type'] = headers['content-type']
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

  /**
   * The frames of a body that came whole: one, or none. To what is no request there is no response, and of an error status only a
   * JSON-RPC error is relayed, so any other body is dropped and the status speaks for itself.
   */
  #bodyFrames(head: UpstreamHead, bytes: Uint8Array): readonly McpFrame[] | Denial {
    const { call, request, sent } = this.#passage
    if (head.status >= 400) return this.#errorFrames(head, bytes)
    if (request.kind === 'listen') return unusableAnswer(call.server)
    if (request.kind !== 'request') return NO_FRAMES
    if (!isJsonType(head.headers)) return unusableAnswer(call.server)
    const frame = this.#response.body(bytes)
    if (this.#asksForWithheld(frame)) return deny('upstream_error', `${call.server} asks for what it was not offered`)
    const relayed = this.#final(frame, bytes)
    return [sent ? relayed.inEvent() : relayed]
  }

  #errorFrames(head: UpstreamHead, bytes: Uint8Array): readonly McpFrame[] | Denial {
    const { call, sent } = this.#passage
    const frame = isJsonType(head.headers) ? this.#errorFrame(bytes) : null
    if (frame !== null) return [sent ? frame.inEvent() : frame]
    return sent ? unusableAnswer(call.server) : NO_FRAMES
  }

  #errorFrame(bytes: Uint8Array): McpFrame | null {
    try {
      return this.#response.errorBody(bytes)
    } catch (error) {
      if (error instanceof InvalidResponseError) return null
      throw error
    }
  }

  /** An answer as it goes on; to the handshake or to a discovery it announces only what the gateway carries. */
  #final(frame: McpFrame, json: Uint8Array): McpFrame {
    const { upstream } = this.#passage
    if (this.#method !== 'initialize' && this.#method !== 'server/discover') return this.#seals.result(frame, json)
    const trimmed = trimAnnouncement(json, frame.value, spokenRevisions(upstream.protocolVersions))
    return trimmed === json ? frame : frame.withJson(trimmed)
  }

  /**
   * A server asks the client for something: the question goes on under a sealed id. Pings and what no server may ask for are answered
   * here.
   */
  #asked(frame: McpFrame, json: Uint8Array): McpFrame | null {
    if (!isAsk(member(frame.value, 'method'))) return this.#answerServer(frame, json)
    return this.#seals.asked(frame, json, this.#forwarder.clock.now())
  }

  #answerServer(frame: McpFrame, json: Uint8Array): null {
    const { call, request } = this.#passage
    this.#answered++
    if (this.#answered > MAX_OWN_ANSWERS)
      throw new AbandonedError('the server keeps asking for what it was not offered')
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

/** `-32601`, or the empty result of a ping, under the server's own request id. */
function serverAnswer(json: Uint8Array, message: unknown): Uint8Array {
  const id = slice(json, ['id'])
  const method = String(member(message, 'method'))
  const error = { code: METHOD_NOT_FOUND, message: `${method} is not offered to servers` }
  const outcome = method === 'ping' ? '"result":{}' : `"error":${JSON.stringify(error)}`
  return Buffer.concat([Buffer.from('{"jsonrpc":"2.0","id":'), id ?? Buffer.from('null'), Buffer.from(`,${outcome}}`)])
}

export function isStream({ status, headers }: UpstreamHead): boolean {
  return status < 300 && isStreamType(headers)
}

/** Only a request and a GET are answered by a stream. */
function mayStream({ kind }: McpRequest): boolean {
  return kind === 'request' || kind === 'listen'
}

const NO_FRAMES: readonly McpFrame[] = []

export function unusableAnswer(server: string): Denial {
  return deny('upstream_error', `${server} sent an answer that is no JSON-RPC message`)
}

/** The denial for a failure of the upstream. Throws what is none: a bug of the gateway, which the runner logs. */
export function faultOf(server: string, error: unknown): Denial {
  if (error instanceof InvalidResponseError || error instanceof AbandonedError)
    return deny('upstream_error', `${server}: ${error.message}`)
  if (error instanceof UpstreamError) return failure(server, error)
  throw error
}
