import { isPromise, member, withoutMembers } from '@plat/core'
import type { BodyAccount, RequestHeaders } from '@plat/http'
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
} from '../../../call/index.ts'
import { EventFrames, type EventGate } from '../../wire/events.ts'
import {
  AbandonedError,
  type BodyDeadline,
  type UpstreamExchange,
  type UpstreamHead,
  type WholeBodyLimits,
  wholeBodyDenial,
} from '../../wire/exchange.ts'
import { isJsonType, isStreamType, STREAM_HEADERS } from '../../wire/message.ts'
import { unusable, withoutForgedRefusal } from '../../wire/refusal.ts'
import { errorMessage } from '../answer.ts'
import { asksForWithheld, isAsk, spokenRevisions, trimAnnouncement } from '../capabilities.ts'
import type { McpFrame } from '../frames/frame.ts'
import { InvalidResponseError, McpResponse } from '../frames/response.ts'
import { ReplySeals } from '../frames/seals.ts'
import { upstreamHeaders } from '../headers.ts'
import { awaitedIdOf, type McpRequest, requestMethodOf, slice, withValue } from '../message.ts'
import { bindingOf } from '../seal/seal.ts'
import { withSharedNames, withSharedUris } from '../shared/uris.ts'
import { withSharedTaskIds } from '../tasks/messages.ts'
import {
  type Forwarder,
  faultOf,
  type McpUpstream,
  openExchange,
  originOfUpstream,
  stdioFailure,
  timeoutOf,
  unusableResponse,
} from './open.ts'

/** Largest JSON response of an upstream, in bytes. */
export const MAX_RESPONSE_BYTES = 32 * 1024 * 1024
/** Time limit of the gateway's own response to a server request, in milliseconds. */
const OWN_ANSWER_MS = 10_000
/** Server requests of one stream to which the gateway itself responds; with more, the stream is aborted. */
const MAX_OWN_ANSWERS = 64

const UNAUTHORIZED = 401

/** JSON-RPC "method not found". */
const METHOD_NOT_FOUND = -32601

export interface McpForward {
  readonly call: Call<'identity' | 'target' | 'hold'>
  readonly request: McpRequest
  readonly upstream: McpUpstream
  /** A wait for an approval has already opened an event stream. */
  readonly sent: boolean
}

/**
 * Sends one request upstream and returns its response in frames. Unchanged bytes are forwarded as received, in both directions. Never
 * forwarded: the caller's credentials, cookies and `x-plat-*` headers, and the upstream's cookies and challenges.
 */
export class Forwarding implements EventListenerObject, EventGate<McpFrame>, WholeBodyLimits {
  readonly #forwarder: Forwarder
  readonly #context: McpForward
  readonly #seals: ReplySeals
  readonly #response: McpResponse
  /** Method of the request to which the response belongs: for a resumed stream, that of the original request. */
  readonly #method: string
  readonly #origin: string
  #credential: Credential
  /** The attempt that the server refused with 401. */
  #refused: Outcome['attempts'][number] | null = null
  #exchange: UpstreamExchange | null = null
  #responses = 0

  /** `credential` is used for the first attempt. */
  constructor(forwarder: Forwarder, context: McpForward, credential: Credential) {
    this.#forwarder = forwarder
    this.#context = context
    this.#credential = credential
    this.#origin = originOfUpstream(forwarder, { upstream: context.upstream, credential })
    const { request } = context
    this.#method = requestMethodOf(request)
    this.#response = new McpResponse({ id: awaitedIdOf(request), method: this.#method, era: request.era })
    this.#seals = new ReplySeals(forwarder.sealer, context.call, request)
  }

  async run(): Promise<Reply | Denial> {
    const { clock } = this.#forwarder
    const { call } = this.#context
    const started = clock.monotonic()
    const exchange = this.#send()
    try {
      const head = await exchange.head
      this.#forwarder.reachability.reached(this.#context.upstream.key)
      const attempt = { endpoint: this.#origin, status: head.status, ms: clock.monotonic() - started }
      const renews = head.status === UNAUTHORIZED && this.#refused === null ? await this.#renews() : false
      if (isDenial(renews)) return this.#giveUp(renews)
      if (renews) {
        this.#refused = attempt
        this.done()
        exchange.abort('the credential was refused')
        return await this.run()
      }
      const attempts = this.#refused === null ? [attempt] : [this.#refused, attempt]
      const refusal = stdioFailure(call.server, this.#context.upstream, head) ?? unusable(call.server, head)
      if (refusal !== null) return this.#giveUp(refusal)
      if (isStream(head)) {
        if (!mayStream(this.#context.request)) return this.#giveUp(unusableResponse(call.server))
        const replyHead = { status: head.status, headers: this.#withSession({ ...STREAM_HEADERS }, head) }
        return { kind: 'frames', head: replyHead, attempts, frames: new EventFrames(exchange, this) }
      }
      const whole = exchange.readAll(this)
      const bytes = isPromise(whole) ? await whole : whole
      if (!(bytes instanceof Uint8Array)) return this.#giveUp(wholeBodyDenial(call.server, bytes))
      const frames = this.#bodyFrames(head, bytes)
      this.done()
      if ('kind' in frames) return frames
      return { kind: 'frames', head: this.#replyHead(head, frames.length > 0), attempts, frames }
    } catch (error) {
      this.done()
      exchange.abort('the response cannot be read')
      this.#forwarder.reachability.failed(this.#context.upstream.key, error)
      return this.#giveUp(faultOf(call.server, error))
    }
  }

  get maxBytes(): number {
    return MAX_RESPONSE_BYTES
  }

  get account(): BodyAccount {
    return this.#context.call
  }

  get deadline(): BodyDeadline {
    const { clock, upstreamTimeoutMs } = this.#forwarder
    return { clock, ms: timeoutOf(this.#context.upstream, upstreamTimeoutMs) }
  }

  /** Gets a newer credential. The request can be repeated, since a server that responded with 401 has not processed it. */
  async #renews(): Promise<boolean | Denial> {
    const { call, upstream } = this.#context
    const next = await this.#forwarder.credentials.renewed(upstream, call.facts.identity, this.#credential)
    if (next === null || isDenial(next)) return next ?? false
    this.#credential = next
    return true
  }

  /** Returns the frame to relay for an event, or null when it was for the gateway. Throws `UpstreamError` to end the stream. */
  pass(event: Uint8Array): McpFrame | null {
    const frame = this.#response.event(event)
    const passed = frame.json === null ? frame : this.#message(frame, frame.json)
    return passed === null ? null : this.#seals.event(passed)
  }

  #message(frame: McpFrame, json: Uint8Array): McpFrame | null {
    if (frame.role === 'request') return this.#serverRequest(frame, json)
    if (frame.role !== 'final') {
      const relayed = this.#notification(frame, json)
      return relayed === null ? null : this.#seals.cancelled(relayed, json)
    }
    if (this.#asksForWithheld(frame))
      throw new AbandonedError('the server requires a capability that it was not offered')
    // A resumed list would not pass the list filters, so the client must request it again.
    if (this.#context.request.kind === 'listen' && this.#method === 'tools/list') return this.#unfiltered(frame)
    return this.#final(frame, json)
  }

  #unfiltered(frame: McpFrame): McpFrame {
    const { call, request } = this.#context
    const denial = deny('upstream_error', 'a list of tools cannot be resumed: request it again')
    return frame.withJson(errorMessage(call.id, request, denial))
  }

  #asksForWithheld(frame: McpFrame): boolean {
    const { call, request } = this.#context
    return asksForWithheld(frame, request.era === 'modern' ? call.body?.value : null)
  }

  /** Called when the call is aborted. */
  handleEvent(): void {
    this.stop()
  }

  /**
   * Stops reading the response. From revision 2026-07-28 on, a disconnect is a cancellation. Before, it is not, so a call to an upstream
   * with a session continues for a limited time, and its response is discarded.
   */
  stop(): void {
    this.done()
    const { call, request } = this.#context
    const exchange = this.#exchange
    if (exchange === null) return
    const runsOn = call.signal.reason === 'client' && request.kind === 'request' && request.session !== null
    if (!runsOn) {
      exchange.abort(String(call.signal.reason ?? 'the response is no longer needed'))
      return
    }
    this.#forwarder.abandoned.add(call.facts.identity, exchange)
  }

  /**
   * Called when the stream ended. It may end before its response only if the client can resume it: a legacy stream that sent an event
   * id, or that was itself resumed. Throws AbandonedError otherwise.
   */
  ended(): StreamEnd {
    this.done()
    if (this.#response.complete) return undefined
    if (this.#seals.resumable) return 'suspended'
    throw new AbandonedError('the stream ended before the response')
  }

  done(): void {
    this.#context.call.signal.removeEventListener('abort', this)
  }

  #giveUp(denial: Denial): Denial {
    this.done()
    this.#exchange?.abort(denial.reason)
    return denial
  }

  #send(): UpstreamExchange {
    const { call, request } = this.#context
    const body = call.body === null ? null : bodyFor(request, call.body.bytes)
    const exchange = this.#open(call.wire.method, upstreamHeaders(call.wire.headers, request), body)
    this.#exchange = exchange
    if (call.signal.aborted) this.stop()
    else call.signal.addEventListener('abort', this)
    return exchange
  }

  #open(method: string, headers: RequestHeaders, body: Uint8Array | null): UpstreamExchange {
    const { upstream, call } = this.#context
    const { identity } = call.facts
    const way = { upstream, credential: this.#credential, identity, caller: callerOf(identity) }
    return openExchange(this.#forwarder, way, { method, headers, body })
  }

  /** Returns the head of the reply, which has only the upstream's content type, sealed session id, `Retry-After` and `Allow`. */
  #replyHead(head: UpstreamHead, hasBody: boolean): Head {
    const { status, headers } = head
    const reply: Record<string, string> = {}
    if (hasBody && typeof headers['content-type'] === 'string') reply['content-type'] = headers['content-type']
    if (typeof headers['retry-after'] === 'string') reply['retry-after'] = headers['retry-after']
    if (typeof headers.allow === 'string') reply.allow = headers.allow
    return { status, headers: this.#withSession(reply, head) }
  }

  /** Adds the upstream's session id, sealed so that only the same session can use it at the same server. */
  #withSession(reply: Record<string, string>, { headers }: UpstreamHead): Record<string, string> {
    const id = headers['mcp-session-id']
    const { call, request } = this.#context
    if (typeof id !== 'string' || request.method !== 'initialize') return reply
    const binding = bindingOf('mcp-session', call.facts.identity, call.server)
    const sealed = this.#forwarder.sealer.seal(binding, { id, target: call.facts.target.key })
    return { ...reply, 'mcp-session-id': sealed }
  }

  /**
   * Returns the frame of a JSON body, or no frame: only requests have responses, and with an error status only a JSON-RPC error is
   * relayed. Any other body is dropped, and only the status is sent.
   */
  #bodyFrames(head: UpstreamHead, bytes: Uint8Array): readonly McpFrame[] | Denial {
    const { call, request, sent } = this.#context
    if (head.status >= 400) return this.#errorFrames(head, bytes)
    if (request.kind === 'listen') return unusableResponse(call.server)
    if (request.kind !== 'request') return NO_FRAMES
    if (!isJsonType(head.headers)) return unusableResponse(call.server)
    const frame = this.#response.body(bytes)
    if (this.#asksForWithheld(frame))
      return deny('upstream_error', `${call.server} requires a capability that it was not offered`)
    const relayed = this.#final(frame, bytes)
    return [sent ? relayed.inEvent() : relayed]
  }

  #errorFrames(head: UpstreamHead, bytes: Uint8Array): readonly McpFrame[] | Denial {
    const { call, sent } = this.#context
    const frame = isJsonType(head.headers) ? this.#errorFrame(bytes) : null
    if (frame !== null) {
      const own = withoutForgedRefusal(bytes, frame.value)
      const relayed = own === bytes ? frame : frame.withJson(own)
      return [sent ? relayed.inEvent() : relayed]
    }
    return sent ? unusableResponse(call.server) : NO_FRAMES
  }

  #errorFrame(bytes: Uint8Array): McpFrame | null {
    try {
      return this.#response.errorBody(bytes)
    } catch (error) {
      if (error instanceof InvalidResponseError) return null
      throw error
    }
  }

  /** Returns a response to relay. Removes forged refusals, and unsupported capabilities from the response to a handshake or a discovery. */
  #final(frame: McpFrame, json: Uint8Array): McpFrame {
    const { upstream } = this.#context
    const announces = this.#method === 'initialize' || this.#method === 'server/discover'
    const own = withoutForgedRefusal(json, frame.value)
    const trimmed = announces ? trimAnnouncement(own, frame.value, spokenRevisions(upstream.protocolVersions)) : own
    const prefixed = this.#prefixed(frame, trimmed)
    const relayed = prefixed === json ? frame : frame.withJson(prefixed)
    return announces ? relayed : this.#seals.result(relayed, prefixed)
  }

  /** Returns a response with URIs as the client must write them, which differ at the address of all servers. */
  #prefixed({ value }: McpFrame, json: Uint8Array): Uint8Array {
    const { shared } = this.#context.request
    return shared === null ? json : withSharedUris(json, value, { method: this.#method, prefix: shared.prefix })
  }

  /** Returns a notification as the client must read it; null for one about a task of another session. */
  #notification(frame: McpFrame, json: Uint8Array): McpFrame | null {
    const { call, request } = this.#context
    const known = this.#forwarder.tasks.notified(call.facts, frame.value)
    if (known === 'foreign') return null
    const { shared } = request
    const prefixed = shared === null ? json : withSharedNames(json, frame.value, shared.prefix)
    const relayed = prefixed === json ? frame : frame.withJson(prefixed)
    return known === null ? relayed : relayed.asking([known])
  }

  /**
   * Handles a request of the server to the client: forwards it with a sealed id, or responds itself to pings and to requests that a
   * server may not send.
   */
  #serverRequest(frame: McpFrame, json: Uint8Array): McpFrame | null {
    if (!isAsk(member(frame.value, 'method'))) return this.#answerServer(frame, json)
    const { shared } = this.#context.request
    const relayed = shared === null ? json : withSharedTaskIds(json, frame.value, shared.prefix)
    return this.#seals.serverRequest(frame, relayed, this.#forwarder.clock.now())
  }

  #answerServer(frame: McpFrame, json: Uint8Array): null {
    const { call, request } = this.#context
    this.#responses++
    if (this.#responses > MAX_OWN_ANSWERS)
      throw new AbandonedError('the server sent too many requests that it may not send')
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
    const cancel = this.#forwarder.clock.after(OWN_ANSWER_MS, () =>
      answer.abort('the upstream did not accept the response in time'),
    )
    answer.discard(cancel)
    return null
  }
}

/** Returns the body for the server: without unsupported members, and with sealed ids, cursors and states replaced by the server's. */
function bodyFor({ withheld, replaced }: McpRequest, bytes: Uint8Array): Uint8Array {
  const carried = withoutMembers(bytes, withheld)
  return replaced.reduce((body, { path, with: value }) => withValue(body, path, value), carried)
}

/** Returns the gateway's response to a server request: an empty result for a ping, otherwise the error -32601. */
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

/** Returns true for messages whose response may be a stream: requests and GET. */
function mayStream({ kind }: McpRequest): boolean {
  return kind === 'request' || kind === 'listen'
}

const NO_FRAMES: readonly McpFrame[] = []
