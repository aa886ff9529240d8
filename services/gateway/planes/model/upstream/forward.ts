import { type Clock, isObject, isPromise, runInSlices } from '@plat/core'
import type { Dialer } from '@plat/http'
import {
  type Denial,
  deny,
  type FrameRun,
  type Head,
  isDenial,
  type Operation,
  type Outcome,
  type Reply,
  UpstreamError,
} from '../../../call/index.ts'
import { EventFrames, type EventGate } from '../../wire/events.ts'
import { AbandonedError, UpstreamExchange, type UpstreamHead, wholeBodyDenial } from '../../wire/exchange.ts'
import { copyHeader, isJsonType, isStreamType, STREAM_HEADERS } from '../../wire/message.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { dialectOfCall } from '../dialects/of-call.ts'
import { modelsFault, type ShapeFault } from '../dialects/shapes.ts'
import { EventReader } from '../events/reader.ts'
import type { TemplateCache } from '../events/templates.ts'
import { ModelFrame } from '../frame.ts'
import { InvalidResponseError } from '../invalid.ts'
import { ModelBody } from '../request.ts'
import { TranslatedBytes } from '../translate/translated.ts'
import { ByteFrames, LineFrames } from './byte-frames.ts'
import type { ContextBinder, Credentials, ModelEndpoint } from './endpoint.ts'
import { asEvent, errorBody, genuine } from './genuine.ts'
import { type Outgoing, outgoingRequest } from './outgoing.ts'
import { failureOf, isBusy, isUnprocessed, isUnsent, unusable, waitOf } from './unusable.ts'

/** Largest JSON response of an upstream, in bytes. */
const MAX_RESPONSE_BYTES = 32 * 1024 * 1024
/** Operations without an effect at the provider that is charged like a generation. */
const IDEMPOTENT: ReadonlySet<Operation> = new Set<Operation>(['model.embed', 'model.info'])

/** Dependencies of forwarding. */
export interface Forwarder {
  readonly dialer: Pick<Dialer, 'client'>
  readonly clock: Clock
  /** docs/spec/gateway.md: `modelRouting.attemptTimeoutSeconds`, in milliseconds. */
  readonly attemptTimeoutMs: number
  readonly circuits: Circuits
  readonly templates: TemplateCache
  readonly credentials: Credentials
  /** CA bundle trusted in addition to the system roots; null: none. */
  readonly extraCA: string | null
  /** Contexts of sessions in engines. */
  readonly contexts: ContextBinder
}

/** Health of endpoints. */
export interface Circuits {
  isOpen(endpoint: ModelEndpoint): boolean
  /** Called before a call tries the endpoint. */
  enter(endpoint: ModelEndpoint): void
  succeeded(endpoint: ModelEndpoint): void
  failed(endpoint: ModelEndpoint): void
}

/** A failed request that may be sent to the same endpoint again: after so many milliseconds. */
export interface Repeatable {
  readonly waitMs: number
}

/** A call to forward to an endpoint. */
export interface EndpointForward extends Outgoing {
  /** Returns true if another attempt follows a 429 or 408, which then counts as a failure and is not relayed. */
  readonly movesOn: (repeatable: Repeatable) => boolean
  /** The limit of output tokens that the gateway set, reported to the caller in a header; null: none. */
  readonly clampedTo: number | null
  /** A wait for an approval has already opened an event stream. */
  readonly sent: boolean
}

/** Response headers that are relayed unchanged, which clients use for retries and in bug reports. */
const DOWN = [
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
  'x-request-id',
  'request-id',
  'openai-processing-ms',
] as const

/**
 * Sends one request to a provider and returns its response in frames of the caller's dialect. Unchanged bytes are forwarded as received,
 * in both directions. The caller's credentials are never forwarded; those of the route are used.
 */
export class Forwarding implements EventListenerObject, EventGate<ModelFrame> {
  readonly #forwarder: Forwarder
  readonly #context: EndpointForward
  readonly #dialect: Dialect
  #exchange: UpstreamExchange | null = null
  #reader: EventReader | null = null
  #started = 0
  #status = 0
  #done = false
  #late = false
  #failed = false
  #repeatable: Repeatable | null = null
  #boundTo: string | undefined

  constructor(forwarder: Forwarder, context: EndpointForward) {
    this.#forwarder = forwarder
    this.#context = context
    this.#dialect = dialectOfCall(context.call)
  }

  async run(): Promise<Reply | Denial> {
    this.#started = this.#forwarder.clock.monotonic()
    if (this.#context.endpoint.provider !== 'ctxengine') return await this.#run(this.#send())
    const refusal = await this.#bind(false)
    if (refusal !== null) return refusal
    const exchange = this.#send()
    const isStale = await exchange.head.then(contextStatus, () => null)
    if (isStale === 'busy') this.#forwarder.contexts.busy()
    if (isStale !== 'stale') return await this.#run(exchange)
    // The engine lost the context, and has not processed the request.
    exchange.abort('the context is stale')
    return (await this.#bind(true)) ?? (await this.#run(this.#send()))
  }

  /** Returns why the call is refused, or null when it is bound to a context, or needs none. */
  async #bind(isStale: boolean): Promise<Denial | null> {
    const { call, endpoint } = this.#context
    const bound = await this.#forwarder.contexts.bind(call, endpoint, isStale)
    if (isDenial(bound)) return bound.code === 'upstream_error' ? this.#giveUp(bound) : this.#end(bound)
    this.#boundTo = bound ?? undefined
    return null
  }

  async #run(exchange: UpstreamExchange): Promise<Reply | Denial> {
    const { call } = this.#context
    try {
      const head = await exchange.head
      this.#status = head.status
      const attempts = [this.attempt]
      const refusal = this.#unusable(head)
      if (refusal !== null) return this.#giveUp(refusal)
      if (this.#isStream(head)) {
        if (!this.#wantsStream) throw new InvalidResponseError('a stream that was not requested')
        return { kind: 'frames', head: this.#streamHead(head), attempts, frames: this.#frames(exchange) }
      }
      if (this.#isBytes(head)) {
        const frames = this.#answer === 'lines' ? new LineFrames(exchange, this) : new ByteFrames(exchange, this)
        return { kind: 'frames', head: this.#wholeHead(head), attempts, frames }
      }
      const all = exchange.readAll({ maxBytes: MAX_RESPONSE_BYTES, account: call })
      const bytes = isPromise(all) ? await this.#inTime(all) : all
      if (!(bytes instanceof Uint8Array)) return this.#end(wholeBodyDenial(call.server, bytes))
      const whole = this.#whole(head, bytes)
      const frame = isPromise(whole) ? await whole : whole
      if (!(frame instanceof ModelFrame)) return this.#giveUp(frame)
      this.#unlisten()
      this.#countResponse(head.status)
      return { kind: 'frames', head: this.#wholeHead(head), attempts, frames: [frame] }
    } catch (error) {
      if (this.#status === 0 && (isUnsent(error) || this.#isIdempotent)) this.#repeatable = { waitMs: 0 }
      const failure = failureOf(call.server, error, this.#late)
      if (failure !== null) return failure.isOfEndpoint ? this.#giveUp(failure.denial) : this.#end(failure.denial)
      // A bug of the gateway, not a failure of the endpoint. The runner logs it with the decision id.
      this.#unlisten()
      exchange.abort('the response cannot be read')
      throw error
    }
  }

  /** The attempt so far; its status is 0 if no head was received. */
  get attempt(): Outcome['attempts'][number] {
    const ms = this.#forwarder.clock.monotonic() - this.#started
    return { endpoint: this.#context.address.origin, status: this.#status, ms }
  }

  /** True if the endpoint failed, for a reason other than the caller's request, so that another may succeed. Includes a refused key. */
  get failed(): boolean {
    return this.#failed
  }

  /** How the failed request may be repeated; null: it may have been executed, and repeating it would execute it again. */
  get repeatable(): Repeatable | null {
    return this.#failed ? this.#repeatable : null
  }

  /** Returns the denial for a response that is not relayed, and notes whether its request may be repeated. */
  #unusable(head: UpstreamHead): Denial | null {
    const now = this.#forwarder.clock.now()
    const isRepeatable = isUnprocessed(head) || (head.status >= 500 && this.#isIdempotent)
    const repeatable = isRepeatable ? { waitMs: waitOf(head.headers, now) ?? 0 } : null
    this.#repeatable = repeatable
    const movesOn = () => repeatable !== null && this.#context.movesOn(repeatable)
    return unusable(this.#context.call.server, head, { movesOn, now })
  }

  /** Embeddings, token counts and lists have no effect at the provider; generations are charged. */
  get #isIdempotent(): boolean {
    return IDEMPOTENT.has(this.#context.call.operation)
  }

  /** Applies the time limit of the attempt to a JSON body as well. */
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
    const { body } = this.#context.call
    return body instanceof ModelBody && body.request.stream
  }

  /** Called when the time limit of the attempt has passed. */
  expire(): void {
    this.#late = true
    this.#exchange?.abort('its time is up')
  }

  /** Returns the frame of an event, or null after the last event of the response. Throws if the event is invalid or reports an error. */
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
    return new EventReader(events, this.#forwarder.templates.of(this.#context.endpoint, events))
  }

  /** Throws if the stream ended without the last event of the dialect. */
  ended(): void {
    this.#unlisten()
    const isBytes = this.#answer === 'audio' || isPieces(this.#answer)
    if (!this.#done && !isBytes) throw new AbandonedError('the stream ended too early')
    this.#forwarder.circuits.succeeded(this.#context.endpoint)
  }

  /** Called when the call is aborted. */
  handleEvent(): void {
    this.stop()
  }

  /** Aborts the request, since tokens that are generated from now on would be charged but not read. */
  stop(error?: unknown): void {
    if (error instanceof UpstreamError) this.#fail()
    this.#unlisten()
    this.#exchange?.abort(String(this.#context.call.signal.reason ?? 'the answer is not wanted'))
  }

  #unlisten(): void {
    this.#context.call.signal.removeEventListener('abort', this)
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

  /** Counts a failure of the endpoint, unless the call was aborted from outside. */
  #fail(): void {
    const { call, endpoint } = this.#context
    if (this.#failed || call.signal.aborted) return
    this.#failed = true
    this.#forwarder.circuits.failed(endpoint)
  }

  #countResponse(status: number): void {
    if (isBusy(status)) this.#fail()
    else this.#forwarder.circuits.succeeded(this.#context.endpoint)
  }

  #send(): UpstreamExchange {
    const { dialer, extraCA } = this.#forwarder
    const { call, address } = this.#context
    const client = dialer.client(address.origin, 'model', extraCA === null ? undefined : { caPEM: extraCA })
    const exchange = new UpstreamExchange(
      client,
      outgoingRequest(this.#forwarder, { ...this.#context, context: this.#boundTo }),
    )
    this.#exchange = exchange
    if (call.signal.aborted) this.stop()
    else call.signal.addEventListener('abort', this)
    return exchange
  }

  #isStream({ status, headers }: UpstreamHead): boolean {
    const { translated } = this.#context
    if (status >= 300 || isPieces(this.#answer)) return false
    return translated === null ? isStreamType(headers) : translated.isStream(headers)
  }

  get #answer(): 'json' | 'text' | 'audio' | 'bytes' | 'lines' {
    const { body, method, facts } = this.#context.call
    if (facts.target.results === true) return 'lines'
    if (method === 'files/content') return 'bytes'
    return (body instanceof ModelBody ? body.dialect.answer?.(body.value) : undefined) ?? 'json'
  }

  #isBytes({ status, headers }: UpstreamHead): boolean {
    if (status >= 300) return false
    return isPieces(this.#answer) || (this.#answer === 'audio' && SOUND.test(headers['content-type'] ?? ''))
  }

  #frames(exchange: UpstreamExchange): EventFrames<ModelFrame> {
    const stream = this.#context.translated?.stream(this.#now) ?? null
    return new EventFrames(stream === null ? exchange : new TranslatedBytes(exchange, stream), this)
  }

  /** Seconds since the epoch. */
  get #now(): number {
    return Math.floor(this.#forwarder.clock.now() / 1000)
  }

  #streamHead({ status, headers }: UpstreamHead): Head {
    return { status, headers: this.#relayedHeaders(headers, { ...STREAM_HEADERS }) }
  }

  #wholeHead({ status, headers }: UpstreamHead): Head {
    const relayed: Record<string, string> = {}
    copyHeader(headers, relayed, 'content-type')
    return { status, headers: this.#relayedHeaders(headers, relayed) }
  }

  /** Adds the headers of the upstream's response that are relayed. */
  #relayedHeaders(headers: UpstreamHead['headers'], relayed: Record<string, string>): Record<string, string> {
    const { clampedTo } = this.#context
    for (const name of DOWN) copyHeader(headers, relayed, name)
    if (clampedTo !== null) relayed['x-plat-max-tokens'] = String(clampedTo)
    return relayed
  }

  /** Returns the frame of a JSON body. Throws `InvalidResponseError`. */
  #whole({ status, headers }: UpstreamHead, bytes: Uint8Array): ModelFrame | Denial | Promise<ModelFrame> {
    const { call, sent, translated } = this.#context
    if (status < 300 && this.#answer === 'text') return ModelFrame.text(bytes)
    if (!isJsonType(headers))
      return deny('upstream_error', `the upstream of ${call.server} answered ${status} without JSON`)
    if (status >= 400) {
      const error = errorBody(bytes, { status, dialect: this.#dialect, isTranslated: translated !== null })
      return sent ? ModelFrame.errorEvent(asEvent(error, this.#dialect)) : ModelFrame.error(error)
    }
    if (sent || this.#wantsStream) throw new InvalidResponseError('no stream')
    if (translated === null) return this.#generated(bytes)
    return runInSlices(translated.answer(bytes, this.#now)).then((answer) => this.#generated(answer))
  }

  /** Returns the frame of a successful response in the caller's API. Throws `InvalidResponseError`. */
  #generated(answer: Uint8Array): ModelFrame {
    const { call } = this.#context
    const frame = genuine(ModelFrame.body(answer), answer)
    const isObjectOfAccount = call.body !== null || call.operation === 'model.batch'
    const fault = isObjectOfAccount ? this.#answerFault(frame.value) : modelsFault(frame.value)
    if (fault !== null) throw new InvalidResponseError(fault)
    return frame
  }

  #answerFault(value: unknown): ShapeFault {
    return isObject(value) ? this.#dialect.answerFault(value) : 'JSON that is not an object'
  }
}

/** Returns what an engine says of the context of a request that it did not process. */
function contextStatus({ status, headers }: UpstreamHead): unknown {
  return status === 409 || status === 429 ? headers['x-context-status'] : null
}

/** Content types of sound. */
const SOUND = /^(?:audio\/[a-z0-9.+-]{1,64}|application\/octet-stream)(?:\s*;|$)/i

/** Whether a response is relayed piece by piece. */
function isPieces(answer: string): boolean {
  return answer === 'bytes' || answer === 'lines'
}
