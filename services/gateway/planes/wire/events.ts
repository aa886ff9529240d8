import { setImmediate } from 'node:timers/promises'
import { Slices } from '@plat/core'
import type { Frame, FrameRun, StreamEnd } from '../../call/index.ts'
import type { UpstreamExchange } from './exchange.ts'
import { SseSplitter } from './sse.ts'

/** Source of a stream's bytes: an upstream's response, as received or translated. */
export type ByteSource = Pick<UpstreamExchange, 'news' | 'take'>

/** A plane's handler of the events of an upstream's stream. */
export interface EventGate<F extends Frame> {
  /** Returns the frame to relay for an event, or null for none. Throws to end the stream with an error. */
  pass(event: Uint8Array): F | null
  /**
   * Returns the frames of the first events of a read that end in it; the others go through `pass`, one by one. Absent: all do.
   */
  together?(events: Uint8Array): readonly (F | FrameRun)[]
  /** Called when the upstream has ended its stream. May return a `StreamEnd`. Throws UpstreamError if the stream is incomplete. */
  ended(): unknown
  /** Called when reading stops: the reader has left, or the stream failed with `error`. */
  stop(error?: unknown): void
}

const SUSPENDED: StreamEnd = 'suspended'

const LF = 10
const BLANK_LINE = Buffer.from('\n\n')
const NOTHING = Buffer.alloc(0)

/**
 * The frames of an event stream. Each batch has the events that one read of the upstream completes, or as many of them as one slice of time allows:
 * while a batch is delivered, thousands may arrive.
 */
export class EventFrames<F extends Frame> implements AsyncIterableIterator<readonly Frame[], StreamEnd> {
  readonly #exchange: ByteSource
  readonly #gate: EventGate<F>
  readonly #splitter = new SseSplitter()
  /** Bytes of an incomplete event in the splitter. */
  #unfinished = 0
  /** Bytes after the last run. */
  #rest: Buffer = NOTHING
  /** The error that ends the stream after the frames before it were read. */
  #fault: { readonly error: unknown } | null = null
  /** Events of the last read, of which those before `#next` have passed the gate. */
  #events: readonly Uint8Array[] = []
  #next = 0
  /** The upstream has ended its stream. */
  #isEnding = false
  #over = false

  constructor(exchange: ByteSource, gate: EventGate<F>) {
    this.#exchange = exchange
    this.#gate = gate
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Rejects with an UpstreamError when the upstream fails or sends an invalid event. */
  async next(): Promise<IteratorResult<readonly Frame[], StreamEnd>> {
    try {
      while (!this.#over) {
        if (this.#fault !== null) throw this.#fault.error
        const frames = this.#next < this.#events.length ? await this.#others() : await this.#read()
        this.#over = this.#isEnding && this.#next === this.#events.length && this.#fault === null
        if (frames.length > 0) return { done: false, value: frames }
      }
      return { done: true, value: this.#gate.ended() === SUSPENDED ? SUSPENDED : undefined }
    } catch (error) {
      this.#over = true
      this.#gate.stop(error)
      throw error
    }
  }

  async return(): Promise<IteratorResult<readonly Frame[], StreamEnd>> {
    if (!this.#over) this.#gate.stop()
    this.#over = true
    return { done: true, value: undefined }
  }

  async #read(): Promise<readonly Frame[]> {
    const news = this.#exchange.news()
    if (news !== null) await news
    const chunks = this.#exchange.take()
    this.#isEnding = chunks === null
    return chunks === null ? this.#last() : this.#framesOf(chunks)
  }

  /** Returns frames of the last read after other callbacks have run. */
  async #others(): Promise<readonly Frame[]> {
    await setImmediate()
    return this.#passed()
  }

  #last(): readonly Frame[] {
    const events = this.#splitter.push(this.#rest)
    return this.#begin([...events, ...this.#splitter.end()])
  }

  /** Returns the frames of a read. Most reads end with an event, and are relayed unchanged. */
  #framesOf(chunks: readonly Uint8Array[]): readonly Frame[] {
    const bytes = joined(this.#rest, chunks)
    this.#rest = NOTHING
    const end = this.#unfinished === 0 ? endOfEvents(bytes) : 0
    if (end === 0 || this.#gate.together === undefined) return this.#split(bytes)
    const frames = this.#gate.together(end === bytes.length ? bytes : bytes.subarray(0, end))
    let size = 0
    for (const { raw } of frames) size += raw?.length ?? 0
    const rest = bytes.subarray(size)
    if (size < end) return [...frames, ...this.#split(rest)]
    this.#rest = rest
    return frames
  }

  #split(bytes: Uint8Array): readonly Frame[] {
    const events = this.#splitter.push(bytes)
    this.#unfinished += bytes.length
    for (const event of events) this.#unfinished -= event.length
    return this.#begin(events)
  }

  #begin(events: readonly Uint8Array[]): F[] {
    this.#events = events
    this.#next = 0
    return this.#passed()
  }

  /**
   * Returns the frames of the next events, as many as one slice allows, and only those before the first event for which the gate throws; these are
   * valid, and relayed.
   */
  #passed(): F[] {
    const frames: F[] = []
    const slices = new Slices()
    try {
      while (this.#next < this.#events.length && !slices.isOver) {
        const event = this.#events[this.#next++]
        const frame = event === undefined ? null : this.#gate.pass(event)
        if (frame !== null) frames.push(frame)
      }
    } catch (error) {
      this.#fault = { error }
    }
    if (this.#next === this.#events.length) {
      this.#events = []
      this.#next = 0
    }
    return frames
  }
}

/** Returns the end of the last blank line, or 0 if there is none. */
function endOfEvents(bytes: Buffer): number {
  const { length } = bytes
  if (bytes[length - 1] === LF && bytes[length - 2] === LF) return length
  const last = bytes.lastIndexOf(BLANK_LINE)
  return last === -1 ? 0 : last + BLANK_LINE.length
}

function joined(rest: Buffer, chunks: readonly Uint8Array[]): Buffer {
  const [first] = chunks
  if (chunks.length !== 1 || first === undefined) return Buffer.concat(rest.length === 0 ? chunks : [rest, ...chunks])
  if (rest.length > 0) return Buffer.concat([rest, first])
  return Buffer.isBuffer(first) ? first : Buffer.from(first.buffer, first.byteOffset, first.byteLength)
}
