import type { Duplex } from 'node:stream'
import type { Clock } from '@plat/core'
import type { Call, Frame, Head, Reply } from '../../../call/index.ts'
import type { NestedCall, Sink } from '../../../pipeline/index.ts'
import { isStreamType, STREAM_HEADERS } from '../../wire/message.ts'

/** Bytes that wait for the client, from which on servers are not read. */
const MAX_WAITING_BYTES = 256 * 1024
/** Milliseconds before a stream that its server has closed is opened again. */
const REOPEN_MS = 2_000

/** Starts the stream of one server; null if the client has no session there. */
export type StartStream = (server: string, sink: Sink) => NestedCall | null

/** Reads the stream of one server. */
export interface StreamSink extends Sink {
  readonly isStream: boolean
  /** Called when the stream has ended. */
  over?(): void
}

type Push = (bytes: Uint8Array) => void | Promise<void>
type SinkOf = (server: string, push: Push) => StreamSink

/** The streams of a client's servers as one. Batches have whole events, in the order in which they arrive. */
export class MergedStream implements AsyncIterableIterator<readonly Frame[], unknown> {
  readonly #clock: Clock
  readonly #start: StartStream
  readonly #servers = new Map<string, () => void>()
  #frames: Frame[] = []
  #waiting = 0
  #over = false
  #whenOver: (() => void) | null = null
  /** Resolves when there are frames, or the stream is over. */
  #news = Promise.withResolvers<void>()
  /** Resolves when the client has read. */
  #room = Promise.withResolvers<void>()

  readonly #sinkOf: SinkOf

  /** `sinkOf` creates what reads the stream of a server; default: its events are passed on as they are. */
  constructor(clock: Clock, start: StartStream, sinkOf: SinkOf = (_, push) => new EventSink(push)) {
    this.#clock = clock
    this.#start = start
    this.#sinkOf = sinkOf
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Adds the stream of a server, if it is not open yet. */
  add(server: string): void {
    if (this.#over || this.#servers.has(server)) return
    const sink = this.#sinkOf(server, (bytes) => this.send(bytes))
    const stream = this.#start(server, sink)
    if (stream === null) return
    this.#servers.set(server, () => stream.stop('client', null))
    void stream.ended.then(() => {
      sink.over?.()
      this.#ended(server, sink.isStream)
    })
  }

  /** Calls `listener` when the stream ends. */
  whenOver(listener: () => void): void {
    this.#whenOver = listener
  }

  async next(): Promise<IteratorResult<readonly Frame[], unknown>> {
    if (this.#frames.length === 0 && !this.#over) await this.#news.promise
    if (this.#over) return { done: true, value: undefined }
    const frames = this.#frames
    this.#frames = []
    this.#waiting = 0
    this.#news = Promise.withResolvers()
    this.#room.resolve()
    this.#room = Promise.withResolvers()
    return { done: false, value: frames }
  }

  async return(): Promise<IteratorResult<readonly Frame[], unknown>> {
    this.end()
    return { done: true, value: undefined }
  }

  end(): void {
    if (this.#over) return
    this.#over = true
    this.#whenOver?.()
    for (const stop of this.#servers.values()) stop()
    this.#servers.clear()
    this.#news.resolve()
    this.#room.resolve()
  }

  /** A server that has no such stream gets no further request for it. */
  #ended(server: string, wasStream: boolean): void {
    if (this.#over || !wasStream) return
    const cancel = this.#clock.after(REOPEN_MS, () => {
      this.#servers.delete(server)
      this.add(server)
    })
    this.#servers.set(server, cancel)
  }

  /** Adds events. Returns a promise if the client has to read first. */
  send(bytes: Uint8Array): void | Promise<void> {
    if (this.#over || bytes.byteLength === 0) return
    this.#frames.push({ role: 'progress', value: undefined, raw: bytes })
    this.#waiting += bytes.byteLength
    this.#news.resolve()
    if (this.#waiting >= MAX_WAITING_BYTES) return this.#room.promise
  }
}

/** Passes on the events of a server's stream, and nothing of another response. */
export class EventSink implements StreamSink {
  headSent = false
  isStream = false
  readonly #push: Push

  constructor(push: Push) {
    this.#push = push
  }

  reply(head: Head): void {
    this.open(head)
    this.isStream = false
  }

  open({ status, headers }: Head): void {
    this.headSent = true
    this.isStream = status < 300 && isStreamType(headers)
  }

  write(bytes: Uint8Array): void | Promise<void> {
    return this.isStream ? this.#push(bytes) : undefined
  }

  end(): void {}

  tunnel(): Duplex | null {
    return null
  }

  destroy(): void {}
}

/** Returns the reply with a merged stream, which ends with its call. */
export function streamReply(call: Call<'identity'>, stream: MergedStream): Reply {
  const end = () => stream.end()
  if (call.signal.aborted) end()
  else call.signal.addEventListener('abort', end)
  return { kind: 'frames', head: { status: 200, headers: STREAM_HEADERS }, frames: stream, attempts: [] }
}
