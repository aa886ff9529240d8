import type { Clock } from '@plat/core'
import { type Dialer, dialFault } from '@plat/http'
import {
  type Call,
  callerOf,
  type Denial,
  deny,
  type FrameRun,
  type Head,
  type Outcome,
  type Reply,
  UpstreamError,
} from '../../../call/index.ts'
import { EventFrames, type EventGate } from '../../wire/events.ts'
import { AbandonedError, UpstreamExchange, type UpstreamHead, wholeBodyDenial } from '../../wire/exchange.ts'
import { copyHeader, isJsonType, isStreamType, STREAM_HEADERS } from '../../wire/headers.ts'
import { isObject, member } from '../../wire/json.ts'
import { failure } from '../../wire/refusal.ts'
import { chat } from '../dialects/chat.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { modelsFault, type ShapeFault } from '../dialects/shapes.ts'
import { EventReader } from '../events/reader.ts'
import type { TemplateCache } from '../events/templates.ts'
import { ModelFrame } from '../frame.ts'
import { InvalidResponseError } from '../invalid.ts'
import { ModelBody, upstreamBody } from '../request.ts'
import { refusalOf } from '../translate/all.ts'
import { type Translated, TranslatedBytes } from '../translate/translated.ts'
import type { Address, Credentials, ModelEndpoint } from './endpoint.ts'

/** Largest JSON answer of an upstream, in bytes. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024
/** How long an answer may pause, in milliseconds: models think, but money is held meanwhile. */
const MAX_PAUSE_MS = 600_000

/** What forwarding needs beside the call. */
export interface Forwarder {
  readonly dialer: Pick<Dialer, 'client'>
  readonly clock: Clock
  /** docs/spec/gateway.md: `modelRouting.attemptTimeoutSeconds`, in milliseconds. */
  readonly attemptTimeoutMs: number
  readonly circuits: Circuits
  readonly templates: TemplateCache
  readonly credentials: Credentials
  /** CA bundle trusted beside the system roots; null: none. */
  readonly extraCA: string | null
}

/** What is known of the health of endpoints. */
export interface Circuits {
  isOpen(endpoint: ModelEndpoint): boolean
  /** A call is about to try the endpoint. */
  enter(endpoint: ModelEndpoint): void
  succeeded(endpoint: ModelEndpoint): void
  failed(endpoint: ModelEndpoint): void
}

/** One call on its way to one endpoint. */
export interface EndpointForward {
  readonly call: Call<'identity' | 'target'>
  readonly endpoint: ModelEndpoint
  /** Where the request goes. */
  readonly address: Address
  /** What the endpoint is asked for; null: a request that names no model. */
  readonly model: string | null
  /** Another endpoint can be asked instead: an answer that says "later" is a failure then. */
  readonly spare: boolean
  /** What a provider is asked that does not speak the caller's dialect; null: it does. */
  readonly translated: Translated | null
  /** The limit of output tokens that the gateway wrote into the request, for the caller to see; null: none. */
  readonly clampedTo: number | null
  /** A wait has opened an event stream already. */
  readonly sent: boolean
}

/** Headers of a caller that an upstream sees as they came. Whatever is not named here stays behind. */
const UP = ['accept', 'traceparent', 'tracestate'] as const
/** Headers of an answer that the caller sees as they came: what clients use for retries and in bug reports. */
const DOWN = [
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'x-request-id',
  'request-id',
  'openai-processing-ms',
] as const

/**
 * Sends one request to a provider and hands its answer out in frames of the caller's dialect. Bytes that nobody changed arrive as they
 * were sent, in both directions. The caller's credentials never go up: the route's own do.
 */
export class Forwarding implements EventListenerObject, EventGate<ModelFrame> {
  readonly #forwarder: Forwarder
  readonly #passage: EndpointForward
  readonly #dialect: Dialect
  #exchange: UpstreamExchange | null = null
  #reader: EventReader | null = null
  #started = 0
  #status = 0
  #done = false
  #late = false
  #failed = false

  constructor(forwarder: Forwarder, passage: EndpointForward) {
    this.#forwarder = forwarder
    this.#passage = passage
    this.#dialect = passage.call.body instanceof ModelBody ? passage.call.body.dialect : chat
  }

  async run(): Promise<Reply | Denial> {
    const { clock } = this.#forwarder
    const { call, spare } = this.#passage
    this.#started = clock.monotonic()
    const exchange = this.#send()
    try {
      const head = await exchange.head
      this.#status = head.status
      const attempts = [this.attempt]
      const refusal = unusable(call.server, head, spare)
      if (refusal !== null) return this.#giveUp(refusal)
      if (this.#isStream(head)) {
        if (!this.#wantsStream) throw new InvalidResponseError('a stream that was not requested')
        return { kind: 'frames', head: this.#streamHead(head), attempts, frames: this.#frames(exchange) }
      }
      const all = exchange.readAll({ maxBytes: MAX_ANSWER_BYTES, account: call })
      const bytes = all instanceof Promise ? await this.#inTime(all) : all
      if (!(bytes instanceof Uint8Array)) return this.#end(wholeBodyDenial(call.server, bytes))
      const frame = this.#whole(head, bytes)
      if (!(frame instanceof ModelFrame)) return this.#giveUp(frame)
      this.#unlisten()
      this.#answered(head.status)
      return { kind: 'frames', head: this.#wholeHead(head), attempts, frames: [frame] }
    } catch (error) {
      if (this.#late)
        return this.#giveUp(deny('upstream_timeout', `the upstream of ${call.server} did not answer in time`))
      // The caller's own share is used up, which says nothing about the endpoint.
      if (dialFault(error) === 'busy') return this.#end(failure(`the upstream of ${call.server}`, error))
      if (error instanceof InvalidResponseError)
        return this.#giveUp(deny('upstream_error', `the upstream of ${call.server} sent ${error.what}`))
      if (error instanceof UpstreamError) return this.#giveUp(failure(`the upstream of ${call.server}`, error))
      // A bug of the gateway says nothing about the endpoint: the runner logs it with the decision id.
      this.#unlisten()
      exchange.abort('the response cannot be read')
      throw error
    }
  }

  /** As it stands now; status 0: no head came. */
  get attempt(): Outcome['attempts'][number] {
    const ms = this.#forwarder.clock.monotonic() - this.#started
    return { endpoint: this.#passage.address.origin, status: this.#status, ms }
  }

  /** The endpoint failed, so that another may do better: it is not about the caller. A key that it does not accept counts. */
  get failed(): boolean {
    return this.#failed
  }

  /** The body of a JSON response counts against the time of the attempt as its head does. */
  async #inTime<T>(body: Promise<T>): Promise<T> {
    const { clock, attemptTimeoutMs } = this.#forwarder
    const left = Math.max(0, this.#started + attemptTimeoutMs - clock.monotonic())
    const cancel = clock.after(left, () => this.expire())
    try {
      return await body
    } finally {
      cancel()
    }
  }

  get #wantsStream(): boolean {
    const { body } = this.#passage.call
    return body instanceof ModelBody && body.request.stream
  }

  /** Its time is up. */
  expire(): void {
    this.#late = true
    this.#exchange?.abort('its time is up')
  }

  /** Throws where the event is invalid or reports an error. Whatever follows the last event of an answer is not part of it: null. */
  pass(event: Uint8Array): ModelFrame | null {
    if (this.#done) return null
    const frame = this.#dialect.events.frame(event)
    if (frame.role === 'final') this.#done = true
    return frame
  }

  together(events: Uint8Array): readonly (ModelFrame | FrameRun)[] {
    if (this.#done) return []
    this.#reader ??= this.#newReader()
    const frames = this.#reader.read(events)
    if (frames.at(-1)?.role === 'final') this.#done = true
    return frames
  }

  #newReader(): EventReader {
    const { events } = this.#dialect
    return new EventReader(events, this.#forwarder.templates.of(this.#passage.endpoint, events))
  }

  /** Only the last event of the dialect says that an answer is whole. */
  ended(): void {
    this.#unlisten()
    if (!this.#done) throw new AbandonedError('the stream ended too early')
    this.#forwarder.circuits.succeeded(this.#passage.endpoint)
  }

  /** The call was stopped. */
  handleEvent(): void {
    this.stop()
  }

  /** Nobody reads the answer any more, and whatever is generated from here on is paid for nothing. */
  stop(error?: unknown): void {
    if (error instanceof UpstreamError) this.#fail()
    this.#unlisten()
    this.#exchange?.abort(String(this.#passage.call.signal.reason ?? 'the answer is not wanted'))
  }

  #unlisten(): void {
    this.#passage.call.signal.removeEventListener('abort', this)
  }

  #giveUp(denial: Denial): Denial {
    this.#fail()
    return this.#end(denial)
  }

  #end(denial: Denial): Denial {
    this.#unlisten()
    this.#exchange?.abort(denial.reason)
    return { ...denial, attempts: [this.attempt] }
  }

  /** Whoever ends a call from outside says nothing about its endpoint. */
  #fail(): void {
    const { call, endpoint } = this.#passage
    if (this.#failed || call.signal.aborted) return
    this.#failed = true
    this.#forwarder.circuits.failed(endpoint)
  }

  #answered(status: number): void {
    if (isBusy(status)) this.#fail()
    else this.#forwarder.circuits.succeeded(this.#passage.endpoint)
  }

  #send(): UpstreamExchange {
    const { dialer, extraCA, attemptTimeoutMs } = this.#forwarder
    const { call, address, model, translated } = this.#passage
    const client = dialer.client(address.origin, 'model', extraCA === null ? undefined : { caPEM: extraCA })
    const own = call.body instanceof ModelBody ? upstreamBody(call.body, model) : null
    const body = translated === null ? own : translated.bytes
    const exchange = new UpstreamExchange(client, {
      method: call.wire.method,
      path: address.path,
      headers: this.#upstreamHeaders(body),
      body,
      headersTimeoutMs: attemptTimeoutMs,
      pauseTimeoutMs: MAX_PAUSE_MS,
      caller: callerOf(call.facts.identity),
    })
    this.#exchange = exchange
    if (call.signal.aborted) this.stop()
    else call.signal.addEventListener('abort', this)
    return exchange
  }

  #upstreamHeaders(body: Uint8Array | null): Record<string, string> {
    const { call, endpoint, address, translated } = this.#passage
    const { headers: own, defaults } = endpoint.wire
    const headers: Record<string, string> = { 'user-agent': 'plat-gateway', 'accept-encoding': 'identity' }
    if (call.body !== null) headers['content-type'] = 'application/json'
    for (const name in defaults) headers[name] = defaults[name] ?? ''
    for (const name of UP) copyHeader(call.wire.headers, headers, name)
    if (translated !== null) headers.accept = translated.accept
    for (const name of this.#dialect.headers) copyHeader(call.wire.headers, headers, name)
    for (const name in own) headers[name] = own[name] ?? ''
    const { clock, credentials } = this.#forwarder
    const { origin, path } = address
    const shown = credentials.headers(endpoint, { method: call.wire.method, origin, path, body, at: clock.now() })
    for (const name in shown) headers[name] = shown[name] ?? ''
    return headers
  }

  #isStream({ status, headers }: UpstreamHead): boolean {
    const { translated } = this.#passage
    if (status >= 300) return false
    return translated === null ? isStreamType(headers) : translated.isStream(headers)
  }

  #frames(exchange: UpstreamExchange): EventFrames<ModelFrame> {
    const stream = this.#passage.translated?.stream(this.#now) ?? null
    return new EventFrames(stream === null ? exchange : new TranslatedBytes(exchange, stream), this)
  }

  /** Seconds since the epoch. */
  get #now(): number {
    return Math.floor(this.#forwarder.clock.now() / 1000)
  }

  #streamHead({ status, headers }: UpstreamHead): Head {
    return { status, headers: this.#told(headers, { ...STREAM_HEADERS }) }
  }

  #wholeHead({ status, headers }: UpstreamHead): Head {
    const told: Record<string, string> = {}
    copyHeader(headers, told, 'content-type')
    return { status, headers: this.#told(headers, told) }
  }

  /** Adds what the caller hears of an upstream's head. */
  #told(headers: UpstreamHead['headers'], told: Record<string, string>): Record<string, string> {
    const { clampedTo } = this.#passage
    for (const name of DOWN) copyHeader(headers, told, name)
    if (clampedTo !== null) told['x-plat-max-tokens'] = String(clampedTo)
    return told
  }

  /** The frame of a response that came whole. Throws `InvalidResponseError`. */
  #whole({ status, headers }: UpstreamHead, bytes: Uint8Array): ModelFrame | Denial {
    const { call, sent, translated } = this.#passage
    if (!isJsonType(headers))
      return deny('upstream_error', `the upstream of ${call.server} answered ${status} without JSON`)
    if (status >= 400) {
      const error = this.#errorBody(bytes, status)
      return sent ? ModelFrame.errorEvent(asEvent(error, this.#dialect)) : ModelFrame.error(error)
    }
    if (sent || this.#wantsStream) throw new InvalidResponseError('no stream')
    const frame = ModelFrame.body(translated === null ? bytes : translated.answer(bytes, this.#now))
    const fault = call.body === null ? modelsFault(frame.value) : this.#answerFault(frame.value)
    if (fault !== null) throw new InvalidResponseError(fault)
    return frame
  }

  #answerFault(value: unknown): ShapeFault {
    return isObject(value) ? this.#dialect.answerFault(value) : 'JSON that is not an object'
  }

  /** An error of the provider. It leaves as it came only where it is one in the dialect of the caller. Throws `InvalidResponseError`. */
  #errorBody(bytes: Uint8Array, status: number): Uint8Array {
    const { value } = ModelFrame.body(bytes)
    const isOwnDialect =
      this.#passage.translated === null && typeof member(member(value, 'error'), 'message') === 'string'
    if (isOwnDialect) return bytes
    return Buffer.from(JSON.stringify(this.#dialect.errorBody(deny('upstream_error', refusalOf(value)), status)))
  }
}

/** An error that came as a JSON text, as one event. */
function asEvent(json: Uint8Array, dialect: Dialect): Uint8Array {
  const line = Buffer.from(json)
    .toString('utf8')
    .replace(/[\r\n]+/g, ' ')
  return Buffer.from(dialect.errorEvent(line))
}

/** Heads that say nothing a caller may hear: a refused key is the gateway's own affair, and may stand in the answer. */
function unusable(server: string, { status, headers }: UpstreamHead, spare: boolean): Denial | null {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity') return deny('upstream_error', `the upstream of ${server} sent an encoded answer`)
  const refused = status === 401 || status === 403 || status === 407
  if (refused) return deny('upstream_credential', `the upstream of ${server} does not accept the gateway's key`)
  const odd = status < 200 || (status >= 300 && status < 400) || status >= 500 || (spare && isBusy(status))
  return odd ? deny('upstream_error', `the upstream of ${server} answered ${status}`) : null
}

/** The endpoint does not answer this now, but might later; another might now. */
function isBusy(status: number): boolean {
  return status === 429 || status === 408
}
