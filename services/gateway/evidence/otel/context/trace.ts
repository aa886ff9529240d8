import type { IncomingHttpHeaders } from 'node:http'
import type { Ids } from '@plat/core'
import type { RequestContext, TraceContext } from '../../../call/index.ts'
import type { ModelFacts } from '../models.ts'
import { isChosen, type Parent, RANDOM, readParent, SAMPLED, writeParent } from './parent.ts'

/** Observations about the response to a call. */
export interface ResponseNotes {
  /** `error.type` of an error response, or null. */
  readonly errorType: string | null
  /** Null if it is not of a model. */
  facts(): ModelFacts | null
}

/** Start of a trace. */
export interface Beginning {
  readonly sampleRatio: number
  readonly ids: Pick<Ids, 'random'>
  /** Wall clock in milliseconds since the epoch, and monotonic milliseconds. */
  readonly now: number
  readonly monotonic: number
}

/** Length of a span id, in bytes. */
const ID_BYTES = 8

/** The two spans of a call: the request to the gateway, and the request to its upstream. */
export class CallTrace implements TraceContext {
  readonly spanId: string
  /** Id of the span sent to the upstream. */
  readonly outgoingId: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** Notes about the response, or null without a review. */
  notes: ResponseNotes | null = null
  /** Milliseconds from the start until the call was forwarded, or null. */
  forwardedMs: number | null = null
  readonly #callId: string
  readonly #began: number
  readonly #sampleRatio: number
  #parent: Parent | null
  #beside: Parent | null = null

  constructor({ id, wire, receivedAt }: RequestContext, { sampleRatio, ids, now, monotonic }: Beginning) {
    const random = Buffer.from(ids.random(2 * ID_BYTES)).toString('hex')
    this.spanId = random.slice(0, 2 * ID_BYTES)
    this.outgoingId = random.slice(2 * ID_BYTES)
    this.startedAt = receivedAt
    this.#callId = id
    // Includes the time before, such as for the check of the token.
    this.#began = monotonic - Math.max(0, now - receivedAt)
    this.#sampleRatio = sampleRatio
    this.#parent = readParent(wire.headers.traceparent, wire.headers.tracestate)
  }

  /** A trace that begins here uses the id of its call, so that each can be found by the other. */
  get traceId(): string {
    return this.#parent?.traceId ?? this.#callId.replaceAll('-', '')
  }

  /** The caller's span; null if the trace begins here. */
  get parent(): Parent | null {
    return this.#parent
  }

  /** Another span, named by the headers while the message names the parent. */
  get beside(): Parent | null {
    return this.#beside
  }

  /** Decided by the service that began the trace. */
  get sampled(): boolean {
    return this.#parent === null ? isChosen(this.traceId, this.#sampleRatio) : (this.#parent.flags & SAMPLED) !== 0
  }

  get traceparent(): string {
    const random = this.#parent === null ? RANDOM : this.#parent.flags & RANDOM
    return writeParent({
      traceId: this.traceId,
      spanId: this.outgoingId,
      flags: random | (this.sampled ? SAMPLED : 0),
    })
  }

  adopt(traceparent: string, tracestate: string): void {
    const named = readParent(traceparent, tracestate)
    if (named === null) return
    const before = this.#parent
    if (before !== null && (before.traceId !== named.traceId || before.spanId !== named.spanId)) this.#beside = before
    this.#parent = named
  }

  /** Milliseconds since the start. */
  ms(monotonic: number): number {
    return Math.max(0, monotonic - this.#began)
  }

  /** Called when the call is forwarded: adds the new span to its headers. */
  forward(headers: IncomingHttpHeaders, monotonic: number): void {
    this.forwardedMs = this.ms(monotonic)
    headers.traceparent = this.traceparent
    if (this.#parent === null || this.#parent.state === '') delete headers.tracestate
    else headers.tracestate = this.#parent.state
  }
}

/** The caller's trace while the gateway adds no spans: records name it, and the caller's headers are propagated. */
export class PassingTrace implements TraceContext {
  readonly traceparent = null
  #parent: Parent | null

  constructor({ headers }: RequestContext['wire']) {
    this.#parent = readParent(headers.traceparent, headers.tracestate)
  }

  get traceId(): string | undefined {
    return this.#parent?.traceId
  }

  get spanId(): string | undefined {
    return this.#parent?.spanId
  }

  adopt(traceparent: string, tracestate: string): void {
    this.#parent = readParent(traceparent, tracestate) ?? this.#parent
  }
}
