import { ByteBuffer, isObject, parseStrict } from '@plat/core'
import type { Members } from './members.ts'

export interface WatchLine {
  /** `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, `ERROR`. */
  readonly type: string
  /** The object; of an `ERROR` the Status. */
  readonly object: Members
}

/** Maximum line length in bytes: an object has at most 1.5 MiB, and its managed fields have less. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024

const LF = 0x0a

/** Splits the body of a watch into lines, regardless of chunking. */
export class WatchLines {
  readonly #line = new ByteBuffer()

  /** Returns the complete lines. Throws on one that is too long or not a watch event. */
  push(bytes: Uint8Array): readonly WatchLine[] {
    const lines: WatchLine[] = []
    let from = 0
    for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, from)) {
      this.#keep(bytes.subarray(from, at))
      from = at + 1
      if (this.#line.size > 0) lines.push(lineOf(this.#line.take()))
    }
    this.#keep(bytes.subarray(from))
    return lines
  }

  #keep(piece: Uint8Array): void {
    if (piece.length === 0) return
    if (this.#line.size + piece.length > MAX_LINE_BYTES)
      throw new Error(`a line of the watch is longer than ${MAX_LINE_BYTES} bytes`)
    this.#line.append(piece)
  }
}

function lineOf(bytes: Uint8Array): WatchLine {
  const value = parseStrict(bytes)
  if (!isObject(value) || typeof value.type !== 'string' || !isObject(value.object)) {
    throw new Error('a line of the watch is not an event')
  }
  return { type: value.type, object: value.object }
}
