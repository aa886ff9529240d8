import type { IncomingHttpHeaders } from 'node:http'
import type { Ids } from '@plat/core'
import type { RequestContext, TraceContext } from '../../../call/index.ts'
import type { ResponseNotes } from '../notes.ts'
import { isChosen, type Parent, RANDOM, readParent, SAMPLED, writeParent } from './parent.ts'

/** What a trace begins with. */
export interface Beginning {
  readonly sampleRatio: number
  readonly ids: Pick<Ids, 'random'>
  /** Milliseconds since the epoch, and monotonic ones. */
  readonly now: number
  readonly monotonic: number
}

/** Bytes of a span id. */
const ID_BYTES = 8

/** The two spans of a call: what the caller asked of the gateway, and what the gateway asked of whoever answers. */
export class CallTrace implements TraceContext {
  readonly spanId: string
  /** Of the span that the other side is told. */
  readonly outgoingId: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** What the answer said; null: nobody looked. */
  notes: ResponseNotes | null = null
  /** Milliseconds from the start until the call was forwarded; null: it was not. */
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
    // What has passed since then, such as the check of a token, belongs to the call as well.
    this.#began = monotonic - Math.max(0, now - receivedAt)
    this.#sampleRatio = sampleRatio
    this.#parent = readParent(wire.headers.traceparent, wire.headers.tracestate)
  }

  /** A trace that begins here has the id of its call: whoever has one finds the other. */
  get traceId(): string {
    return this.#parent?.traceId ?? this.#callId.replaceAll('-', '')
  }

  /** The span of the caller; null: the trace begins here. */
  get parent(): Parent | null {
    return this.#parent
  }

  /** Another span that the headers named while the message named the parent. */
  get beside(): Parent | null {
    return this.#beside
  }

  /** Whoever began the trace has chosen. */
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

  /** The call goes on: whoever gets it is told of the span that begins. */
  forward(headers: IncomingHttpHeaders, monotonic: number): void {
    this.forwardedMs = this.ms(monotonic)
    headers.traceparent = this.traceparent
    if (this.#parent === null || this.#parent.state === '') delete headers.tracestate
    else headers.tracestate = this.#parent.state
  }
}

/** The trace of a caller while the gateway adds no spans of its own: records name it, and everybody is told what the caller said. */
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
