import type { Frame, FrameRun, StreamEnd } from '../../call/index.ts'
import type { UpstreamExchange } from './exchange.ts'
import { SseSplitter } from './sse.ts'

/** Where the bytes of a stream come from: an upstream's answer, as it came or in other words. */
export type ByteSource = Pick<UpstreamExchange, 'news' | 'take'>

/** What a plane makes of each event of an upstream's stream. */
export interface EventGate<F extends Frame> {
  /** The frame that goes on for the bytes of one event; null: none. Throws what ends the stream. */
  pass(event: Uint8Array): F | null
  /**
   * The frames of leading events among those that came whole in one read; the others go through `pass`, one by one. Absent: all do.
   */
  together?(events: Uint8Array): readonly (F | FrameRun)[]
  /** The upstream has ended its stream; may return a `StreamEnd`. Throws an `UpstreamError` where that is too early. */
  ended(): unknown
  /** Nobody reads on: the reader has left, or the stream failed by `error`. */
  stop(error?: unknown): void
}

const SUSPENDED: StreamEnd = 'suspended'

const LF = 10
const BLANK_LINE = Buffer.from('\n\n')
const NOTHING = Buffer.alloc(0)

/** The frames of an event stream: one batch for what one read of the upstream completes. */
export class EventFrames<F extends Frame> implements AsyncIterableIterator<readonly Frame[], StreamEnd> {
  readonly #exchange: ByteSource
  readonly #gate: EventGate<F>
  readonly #splitter = new SseSplitter()
  /** Bytes of an event that the splitter has not seen to its end. */
  #unfinished = 0
  /** What came behind the last run. */
  #rest: Buffer = NOTHING
  /** What ends the stream, once the frames before it were read. */
  #fault: { readonly error: unknown } | null = null
  #over = false

  constructor(exchange: ByteSource, gate: EventGate<F>) {
    this.#exchange = exchange
    this.#gate = gate
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Throws an `UpstreamError` when the upstream dies, or sends what must not pass. */
  async next(): Promise<IteratorResult<readonly Frame[], StreamEnd>> {
    try {
      while (!this.#over) {
        if (this.#fault !== null) throw this.#fault.error
        const news = this.#exchange.news()
        if (news !== null) await news
        const chunks = this.#exchange.take()
        const frames = chunks === null ? this.#last() : this.#taken(chunks)
        this.#over = chunks === null && this.#fault === null
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

  #last(): readonly Frame[] {
    const events = this.#splitter.push(this.#rest)
    return this.#passed([...events, ...this.#splitter.end()])
  }

  /** Most reads end with an event and hold nothing but text: they are passed on as they came. */
  #taken(chunks: readonly Uint8Array[]): readonly Frame[] {
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
    return this.#passed(events)
  }

  /** The frames before the first event that the gate throws on: they are valid, and are counted. */
  #passed(events: readonly Uint8Array[]): F[] {
    const frames: F[] = []
    try {
      for (const event of events) {
        const frame = this.#gate.pass(event)
        if (frame !== null) frames.push(frame)
      }
    } catch (error) {
      this.#fault = { error }
    }
    return frames
  }
}

/** Where the last blank line ends; 0: there is none. */
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
