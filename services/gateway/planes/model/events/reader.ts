import { isUtf8 } from 'node:buffer'
import { FrameRun } from '../../../call/index.ts'
import type { Events } from '../dialects/dialect.ts'
import { type ModelFrame, splitRun, viewOf } from '../frame.ts'
import { InvalidResponseError } from '../invalid.ts'
import { type Words, wordsOf } from './template.ts'
import { EventTemplates } from './templates.ts'

const BLANK_LINE = Buffer.from('\n\n')
const LF = 0x0a
const CR = 0x0d

/** Reads the whole events of each read of one stream. Plain events become runs, and those that match a template are not parsed. */
export class EventReader {
  readonly #events: Events
  readonly #templates: EventTemplates
  /** The event that ended the last run, if it is valid. */
  #next: ModelFrame | null = null

  constructor(events: Events, templates = new EventTemplates()) {
    this.#events = events
    this.#templates = templates
  }

  /**
   * Returns the frames of the leading events: up to the one that ends the stream, and before the first that is invalid, has a CR, or begins
   * with a blank line.
   */
  read(events: Uint8Array): readonly (ModelFrame | FrameRun)[] {
    const frames: (ModelFrame | FrameRun)[] = []
    // Events end at a LF, so each of them is UTF-8.
    if (!isUtf8(events)) return frames
    const words = wordsOf(viewOf(events))
    for (let at = 0; at < events.length; ) {
      const run = this.#run(words, at)
      if (run !== null) {
        frames.push(run)
        at += run.raw.length
      }
      if (this.#next === null) break
      frames.push(this.#next)
      at += this.#next.raw.length
      if (this.#next.role === 'final') break
    }
    return frames
  }

  /** Returns the plain events from `start` on as one frame; null: the first one is not plain. */
  #run(words: Words, start: number): FrameRun | null {
    const { bytes } = words
    this.#next = null
    let count = 0
    let shortest = Number.POSITIVE_INFINITY
    let at = start
    while (at < bytes.length) {
      let end = this.#templates.endOf(words, at)
      if (end === -1) {
        const frame = this.#parsed(bytes, at)
        if (frame === null || !this.#events.isPlain(frame)) {
          this.#next = frame
          break
        }
        this.#templates.learn(frame)
        end = at + frame.raw.length
      }
      count++
      if (end - at < shortest) shortest = end - at
      at = end
    }
    return count === 0 ? null : new FrameRun({ raw: bytes.subarray(start, at), count, shortest, split: splitRun })
  }

  /** Returns null where the event at `start` is invalid, or its end takes more than a search for LF to find. */
  #parsed(bytes: Buffer, start: number): ModelFrame | null {
    const blank = bytes.indexOf(BLANK_LINE, start)
    if (blank === -1 || bytes[start] === LF) return null
    const event = bytes.subarray(start, blank + BLANK_LINE.length)
    if (event.includes(CR)) return null
    try {
      return this.#events.frame(event)
    } catch (error) {
      if (error instanceof InvalidResponseError) return null
      throw error
    }
  }
}
