import { type Clock, isPromise, JsonError, whenReady } from '@plat/core'
import {
  type Denial,
  deny,
  type Frame,
  FrameRun,
  isDenial,
  type Message,
  type Reply,
  type StreamEnd,
  UpstreamError,
} from '../../call/index.ts'
import type { Plane } from '../plane.ts'
import type { GovernedCall } from './call.ts'
import { aborted, abortedBy, type CallEnd, completed, failed, refused, suspended } from './call-abort.ts'
import { STALLED_CALLER_MS } from './exchange.ts'
import { ReviewChain, type ReviewResult } from './reviews.ts'

type FramesReply = Extract<Reply, { kind: 'frames' }>

const nothing = new Uint8Array(0)
const NO_FRAMES: readonly Frame[] = []
const SUSPENDED: StreamEnd = 'suspended'

/** Dependencies of `relay`. */
export interface RelayParts {
  readonly plane: Plane
  readonly clock: Clock
  /** Records requests of the upstream to the caller. Resolves to a denial when the record failed and the audit policy is `closed`. */
  recordMessages(call: GovernedCall, messages: readonly Message[]): Promise<Denial | null>
}

/** Passes the frames of a reply through the reviews and writes them to the caller. Sets the tally of the call. */
export function relay(call: GovernedCall, reply: FramesReply, parts: RelayParts): CallEnd | Promise<CallEnd> {
  const reviews = new ReviewChain(call, parts.clock)
  const work = new Relay(call, reply, parts, reviews)
  const denial = reviews.open()
  const ended = denial === null ? work.run() : refused(denial)
  return whenReady(ended, finished, work)
}

/** Ends the reviews. */
function finished(ended: CallEnd, work: Relay): CallEnd {
  return work.finish(ended)
}

class Relay {
  readonly #call: GovernedCall
  readonly #parts: RelayParts
  readonly #plane: Plane
  readonly #reply: FramesReply
  readonly #clock: Clock
  readonly #reviews: ReviewChain
  /** True for an event stream, whose batches are written as they arrive. Otherwise the first batch waits, in case it is the whole body. */
  #streamed: boolean
  #waiting: Uint8Array = nothing
  /** `#waiting` as a string, if that is known. */
  #ascii: string | null = null
  /** The final frame was written: clients may disconnect after it, before the upstream ends its stream. */
  #finalSent = false
  /** Source of batches; null when the response is complete already. */
  readonly #source: AsyncIterator<readonly Frame[], unknown> | null
  readonly #whole: readonly Frame[]
  /** How the call ends once all frames were delivered. */
  #delivered: CallEnd = completed

  constructor(call: GovernedCall, reply: FramesReply, parts: RelayParts, reviews: ReviewChain) {
    this.#call = call
    this.#parts = parts
    this.#plane = parts.plane
    this.#reply = reply
    this.#clock = parts.clock
    this.#reviews = reviews
    const { frames } = reply
    this.#source = isList(frames) ? null : frames[Symbol.asyncIterator]()
    this.#whole = isList(frames) ? frames : NO_FRAMES
    this.#streamed = isEventStream(reply) || call.sink.headSent
  }

  /** Returns a plain value when the response is complete already and no review returns a promise. */
  run(): CallEnd | Promise<CallEnd> {
    const call = this.#call
    // Sends the head at once, so that the client of a long stream need not wait for the first event.
    if (call.long && this.#streamed && !call.sink.headSent) call.sink.open(this.#reply.head, this.#overhead(), true)
    if (this.#source !== null) return this.#stream(this.#source)
    const result = this.#deliverBatch(this.#whole)
    return isPromise(result) ? result.then((ended) => ended ?? this.#end()) : (result ?? this.#end())
  }

  #end(): CallEnd | Promise<CallEnd> {
    const result = this.#deliverBatch(null)
    return isPromise(result) ? result.then((ended) => ended ?? this.#delivered) : (result ?? this.#delivered)
  }

  /** Reads and delivers one batch after another. */
  async #stream(source: AsyncIterator<readonly Frame[], unknown>): Promise<CallEnd> {
    const call = this.#call
    for (;;) {
      const began = this.#clock.monotonic()
      let next: IteratorResult<readonly Frame[], unknown> | typeof aborted
      try {
        next = await call.abort.until(source.next())
      } catch (error) {
        const fault = this.#faultOf(error)
        call.upstreamMs += this.#clock.monotonic() - began
        return call.abort.reason === null ? failed(fault) : abortedBy(call.abort)
      }
      call.upstreamMs += this.#clock.monotonic() - began
      if (next === aborted) return abortedBy(call.abort)
      if (next.done === true && next.value === SUSPENDED) this.#delivered = suspended
      const result = this.#deliverBatch(next.done === true ? null : next.value)
      const ended = isPromise(result) ? await result : result
      if (ended !== null) return ended
    }
  }

  /** Returns the denial for an error that the frames threw. Other errors than those of the upstream are bugs: logged, without details. */
  #faultOf(error: unknown): Denial {
    if (error instanceof UpstreamError) return deny(error.code, error.message)
    if (error instanceof JsonError) return deny('upstream_error', 'the upstream sent invalid JSON')
    return this.#call.request.internalError('reading the response', error)
  }

  /** Ends the reviews and sets the tally of the call. */
  finish(ended: CallEnd): CallEnd {
    const corrected = ended.ending === 'client' && this.#finalSent ? completed : ended
    if (ended.ending !== 'complete' && ended.ending !== 'suspended') {
      this.#reviews.abandon(corrected.ending)
      // Not awaited, since an upstream that hangs would delay the end of the call. The signal aborts it as well.
      this.#source
        ?.return?.()
        .then(undefined, (error) => this.#call.request.internalError('leaving the upstream', error))
    }
    this.#call.tally = this.#reviews.tally()
    return corrected
  }

  /** Passes a batch through the reviews and writes it to the caller; null ends the reply. Returns a promise only if it has to wait. */
  #deliverBatch(batch: readonly Frame[] | null): CallEnd | null | Promise<CallEnd | null> {
    const passing = batch === null ? this.#reviews.finish() : this.#reviews.pass(batch)
    const last = batch === null
    return isPromise(passing) ? passing.then((passed) => this.#deliver(passed, last)) : this.#deliver(passing, last)
  }

  #deliver(passed: ReviewResult, last: boolean): CallEnd | null | Promise<CallEnd | null> {
    const call = this.#call
    if (call.abort.reason !== null || passed === aborted) return abortedBy(call.abort)
    if (isDenial(passed)) return refused(passed)
    const denial = call.long ? call.recheck(this.#clock.now()) : null
    if (denial !== null) return refused(denial)
    return passed.some(hasMessages) ? this.#recordAndSend(passed, last) : this.#send(passed, last)
  }

  /** Records requests of the upstream to the caller before it sends them. */
  async #recordAndSend(frames: readonly Frame[], last: boolean): Promise<CallEnd | null> {
    const call = this.#call
    const messages = frames.flatMap((frame) => frame.messages ?? [])
    const denial = await call.abort.until(this.#parts.recordMessages(call, messages))
    if (denial === aborted) return abortedBy(call.abort)
    return denial === null ? this.#send(frames, last) : refused(denial)
  }

  /** Writes frames. Returns a promise only if the caller's buffer is full. */
  #send(frames: readonly Frame[], last: boolean): CallEnd | null | Promise<CallEnd | null> {
    const call = this.#call
    call.frames += countOf(frames)
    const bytes = join(this.#waiting, encodeFrames(this.#plane, frames))
    if (last && !call.sink.headSent) {
      call.bytesDown += bytes.byteLength
      call.sink.reply(this.#reply.head, this.#overhead(), bytes, bytes === this.#waiting ? this.#ascii : null)
      return this.#delivered
    }
    if (!last && !this.#streamed) {
      this.#streamed = true
      this.#waiting = bytes
      this.#ascii = frames.length === 1 ? (frames[0]?.ascii ?? null) : null
      return null
    }
    this.#waiting = nothing
    const room = bytes.byteLength === 0 ? undefined : this.#write(bytes)
    if (frames.some(isFinal)) this.#finalSent = true
    if (room !== undefined) return this.#waitForRoom(room, last)
    if (!last) return null
    call.sink.end()
    return this.#delivered
  }

  #write(bytes: Uint8Array): void | Promise<void> {
    const call = this.#call
    if (!call.sink.headSent) call.sink.open(this.#reply.head, this.#overhead(), false)
    call.bytesDown += bytes.byteLength
    return call.sink.write(bytes)
  }

  async #waitForRoom(room: Promise<void>, last: boolean): Promise<CallEnd | null> {
    const call = this.#call
    const reason = 'the caller stopped reading'
    const by = { monotonic: this.#clock.monotonic(), ms: STALLED_CALLER_MS, code: 'request_timeout', reason } as const
    if ((await call.within(room, by)) === aborted) return abortedBy(call.abort)
    if (!last) return null
    call.sink.end()
    return this.#delivered
  }

  #overhead(): number {
    return this.#call.overheadMs(this.#clock.monotonic())
  }
}

/** Returns the bytes of frames for one write. Unchanged frames keep the bytes received. */
export function encodeFrames(plane: Plane, frames: readonly Frame[]): Uint8Array {
  const first = frames[0]
  if (first === undefined) return nothing
  if (frames.length === 1) return first.raw ?? plane.encode(first)
  return Buffer.concat(frames.map((frame) => frame.raw ?? plane.encode(frame)))
}

function join(before: Uint8Array, after: Uint8Array): Uint8Array {
  if (before.byteLength === 0) return after
  return after.byteLength === 0 ? before : Buffer.concat([before, after])
}

function isFinal({ role }: Frame): boolean {
  return role === 'final'
}

function hasMessages({ messages }: Frame): boolean {
  return messages !== undefined && messages.length > 0
}

function countOf(frames: readonly Frame[]): number {
  let count = 0
  for (const frame of frames) count += frame instanceof FrameRun ? frame.count : 1
  return count
}

function isList(frames: FramesReply['frames']): frames is readonly Frame[] {
  return Array.isArray(frames)
}

function isEventStream({ head }: FramesReply): boolean {
  return head.headers['content-type']?.startsWith('text/event-stream') === true
}
