import type { Frame, Reply, StreamEnd } from '../../../call/index.ts'
import { EventFrames, type EventGate } from '../../wire/events.ts'
import { STREAM_HEADERS } from '../../wire/message.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { ModelFrame } from '../frame.ts'

type FramesReply = Extract<Reply, { kind: 'frames' }>

/** A complete response in the API of its caller, before it was redacted. */
export interface StoredResponse {
  readonly bytes: Uint8Array
  /** An event stream, else JSON. */
  readonly isStream: boolean
}

/** Bytes of a stream that are parsed at once. */
const SLICE_BYTES = 64 * 1024

/** Returns a stored response as a reply, which passes all reviews like that of a provider. */
export function replayOf(
  { bytes, isStream }: StoredResponse,
  dialect: Dialect,
  own: Record<string, string>,
): FramesReply {
  const type = isStream ? STREAM_HEADERS : { 'content-type': 'application/json' }
  const head = { status: 200, headers: { ...type, ...own } }
  const frames = isStream ? new EventFrames(new Slices(bytes), new ReplayGate(dialect)) : [ModelFrame.body(bytes)]
  return { kind: 'frames', head, frames, attempts: [] }
}

/** A stored stream as a source of bytes. */
class Slices {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  news(): Promise<void> | null {
    return null
  }

  take(): readonly Uint8Array[] | null {
    if (this.#at >= this.#bytes.length) return null
    const slice = this.#bytes.subarray(this.#at, this.#at + SLICE_BYTES)
    this.#at += slice.length
    return [slice]
  }
}

class ReplayGate implements EventGate<ModelFrame> {
  readonly #dialect: Dialect

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  pass(event: Uint8Array): ModelFrame {
    return this.#dialect.events.frame(event)
  }

  ended(): void {}

  stop(): void {}
}

/** Receives a complete response. */
export interface Capture {
  /** Returns false if no more bytes may be kept. */
  readonly retain: (bytes: number) => boolean
  readonly store: (response: StoredResponse) => void
}

/** Returns the reply, and stores its response once it is complete. Responses that are not 200 or too large are not stored. */
export function captured(reply: FramesReply, capture: Capture): FramesReply {
  if (reply.head.status !== 200) return reply
  if (Symbol.asyncIterator in reply.frames) return { ...reply, frames: new CapturedFrames(reply.frames, capture) }
  const [frame] = reply.frames
  if (reply.frames.length === 1 && frame?.role === 'final' && frame.raw !== null && capture.retain(frame.raw.length))
    capture.store({ bytes: Buffer.from(frame.raw), isStream: false })
  return reply
}

/** A stream whose bytes are kept until it is complete. */
class CapturedFrames implements AsyncIterableIterator<readonly Frame[], StreamEnd> {
  readonly #frames: AsyncIterator<readonly Frame[], unknown>
  readonly #capture: Capture
  /** Null: the response is not stored. */
  #parts: Uint8Array[] | null = []

  constructor(frames: AsyncIterable<readonly Frame[], unknown>, capture: Capture) {
    this.#frames = frames[Symbol.asyncIterator]()
    this.#capture = capture
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<readonly Frame[], StreamEnd>> {
    const result = await this.#frames.next()
    if (result.done !== true) {
      for (const frame of result.value) this.#keep(frame)
      return result
    }
    const parts = this.#parts
    this.#parts = null
    if (parts !== null && result.value === undefined)
      this.#capture.store({ bytes: Buffer.concat(parts), isStream: true })
    return { done: true, value: result.value === 'suspended' ? 'suspended' : undefined }
  }

  async return(): Promise<IteratorResult<readonly Frame[], StreamEnd>> {
    this.#parts = null
    await this.#frames.return?.()
    return { done: true, value: undefined }
  }

  #keep({ raw, role }: Frame): void {
    if (this.#parts === null) return
    if (raw === null || role === 'error' || !this.#capture.retain(raw.length)) this.#parts = null
    else this.#parts.push(raw)
  }
}
