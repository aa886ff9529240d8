import type { Frame } from './reply.ts'

/**
 * Consecutive events of a stream in one frame. None of them ends or fails the stream or reports usage. A review without `skim` gets
 * each event as a separate frame.
 */
export class FrameRun implements Frame {
  readonly role = 'partial'
  readonly value = undefined
  /** The events as received. */
  readonly raw: Uint8Array
  /** The number of events. */
  readonly count: number
  /** Bytes of the shortest event. */
  readonly shortest: number
  readonly #split: (events: Uint8Array) => readonly Frame[]

  constructor(parts: {
    readonly raw: Uint8Array
    readonly count: number
    readonly shortest: number
    readonly split: (events: Uint8Array) => readonly Frame[]
  }) {
    this.raw = parts.raw
    this.count = parts.count
    this.shortest = parts.shortest
    this.#split = parts.split
  }

  /** Returns each event as a frame. */
  apart(): readonly Frame[] {
    return this.#split(this.raw)
  }
}
