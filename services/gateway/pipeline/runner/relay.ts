import type { Clock } from '@plat/core'
import { deny, type Frame, isDenial, type Reply } from '../../call/index.ts'
import type { Plane } from '../plane.ts'
import type { GovernedCall } from './call.ts'
import { ReviewChain } from './reviews.ts'
import { completed, died, type Ended, refused, stopped, stoppedBy } from './stopper.ts'

/** A caller that reads nothing for this long is cut off, in milliseconds: its call holds memory and an upstream connection. */
const STALLED_CALLER_MS = 60_000

type FramesReply = Extract<Reply, { kind: 'frames' }>

const nothing = new Uint8Array(0)
const brokenOff = deny('upstream_error', 'the upstream ended before its answer was complete')

/** Takes the frames of a reply through the reviews to the caller. The call's tally is there when it is over. */
export async function relay(call: GovernedCall, plane: Plane, reply: FramesReply, clock: Clock): Promise<Ended> {
  const reviews = new ReviewChain(call, clock)
  const source = reply.frames[Symbol.asyncIterator]()
  const denial = reviews.open()
  const ended = denial === null ? await new Relay({ call, plane, reply, clock, reviews }).run(source) : refused(denial)
  if (ended.ending !== 'complete') {
    reviews.abandon(ended.ending)
    // Not awaited: an upstream that hangs would hold the call. It is told by the signal as well.
    source.return?.().then(undefined, ignore)
  }
  call.tally = reviews.tally()
  return ended
}

class Relay {
  readonly #call: GovernedCall
  readonly #plane: Plane
  readonly #reply: FramesReply
  readonly #clock: Clock
  readonly #reviews: ReviewChain
  /** An event stream is passed on as it comes. Anything else waits until it is known whether its first batch is all of it. */
  #streamed: boolean
  #waiting: Uint8Array = nothing

  constructor(parts: {
    readonly call: GovernedCall
    readonly plane: Plane
    readonly reply: FramesReply
    readonly clock: Clock
    readonly reviews: ReviewChain
  }) {
    this.#call = parts.call
    this.#plane = parts.plane
    this.#reply = parts.reply
    this.#clock = parts.clock
    this.#reviews = parts.reviews
    this.#streamed = isEventStream(parts.reply) || parts.call.sink.headSent
  }

  /** One turn is one read of the upstream and one write to the caller. */
  async run(source: AsyncIterator<readonly Frame[]>): Promise<Ended> {
    const call = this.#call
    // Whoever listens wants to know at once that the stream stands, long before its first event.
    if (call.long && this.#streamed && !call.sink.headSent) call.sink.open(this.#reply.head, this.#overhead(), true)
    for (;;) {
      const began = this.#clock.monotonic()
      let next: IteratorResult<readonly Frame[]> | typeof stopped
      try {
        next = await call.stopper.until(source.next())
      } catch {
        next = stopped
      } finally {
        call.upstreamMs += this.#clock.monotonic() - began
      }
      if (next === stopped) return call.stopper.reason === null ? died(brokenOff) : stoppedBy(call.stopper)
      const last = next.done === true
      const passing = last ? this.#reviews.finish() : this.#reviews.pass(next.value)
      const passed = passing instanceof Promise ? await passing : passing
      if (call.stopper.reason !== null || passed === stopped) return stoppedBy(call.stopper)
      if (isDenial(passed)) return refused(passed)
      const denial = call.long ? call.standing(this.#clock.now()) : null
      if (denial !== null) return refused(denial)
      const sent = this.#send(passed, last)
      const ended = sent instanceof Promise ? await sent : sent
      if (ended !== null) return ended
    }
  }

  /** A plain value as long as the caller keeps up. */
  #send(frames: readonly Frame[], last: boolean): Ended | null | Promise<Ended | null> {
    const call = this.#call
    call.frames += frames.length
    const bytes = join(this.#waiting, encodeFrames(this.#plane, frames))
    if (last && !call.sink.headSent) {
      call.bytesDown += bytes.byteLength
      call.sink.reply(this.#reply.head, this.#overhead(), bytes)
      return completed
    }
    if (!last && !this.#streamed) {
      this.#streamed = true
      this.#waiting = bytes
      return null
    }
    this.#waiting = nothing
    const room = bytes.byteLength === 0 ? undefined : this.#write(bytes)
    if (room !== undefined) return this.#waitForRoom(room, last)
    if (!last) return null
    call.sink.end()
    return completed
  }

  #write(bytes: Uint8Array): void | Promise<void> {
    const call = this.#call
    if (!call.sink.headSent) call.sink.open(this.#reply.head, this.#overhead(), false)
    call.bytesDown += bytes.byteLength
    return call.sink.write(bytes)
  }

  async #waitForRoom(room: Promise<void>, last: boolean): Promise<Ended | null> {
    const call = this.#call
    const reason = 'the caller stopped reading'
    const by = { now: this.#clock.now(), ms: STALLED_CALLER_MS, code: 'request_timeout', reason } as const
    if ((await call.within(room, by)) === stopped) return stoppedBy(call.stopper)
    if (!last) return null
    call.sink.end()
    return completed
  }

  #overhead(): number {
    return this.#call.overheadMs(this.#clock.monotonic())
  }
}

/** The bytes of frames, for one write. Untouched frames keep the bytes that came. */
export function encodeFrames(plane: Plane, frames: readonly Frame[]): Uint8Array {
  const [first, ...rest] = frames
  if (first === undefined) return nothing
  const bytes = first.raw ?? plane.encode(first)
  return rest.length === 0 ? bytes : Buffer.concat([bytes, ...rest.map((frame) => frame.raw ?? plane.encode(frame))])
}

function join(before: Uint8Array, after: Uint8Array): Uint8Array {
  if (before.byteLength === 0) return after
  return after.byteLength === 0 ? before : Buffer.concat([before, after])
}

function isEventStream({ head }: FramesReply): boolean {
  return head.headers['content-type']?.startsWith('text/event-stream') === true
}

function ignore(): void {}
