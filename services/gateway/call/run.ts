import type { Frame } from './reply.ts'

/**
 * Events of a stream that came together, as one frame: the plane saw that none of them ends the stream, fails it or counts what it
 * used. A review that cannot skim them gets each apart.
 */
export class FrameRun implements Frame {
  readonly role = 'partial'
  readonly value = undefined
  /** The events as they came. */
  readonly raw: Uint8Array
  /** How many there are. */
  readonly count: number
  /** Bytes of the shortest. */
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

  /** Each event as a frame of its own. */
  apart(): readonly Frame[] {
    return this.#split(this.raw)
  }
}
