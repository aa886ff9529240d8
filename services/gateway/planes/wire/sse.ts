import { ByteBuffer } from '@plat/core'
import { UpstreamError } from '../../call/index.ts'

/** Line feed and carriage return. A line of an event stream ends with LF, CR or CR LF. */
const LF = 10
const CR = 13
const COLON = 58
const SPACE = 32

/** Largest event, in bytes. A stream with a larger one is aborted. */
export const MAX_EVENT_BYTES = 32 * 1024 * 1024

/** Maximum number of lines of one event, since each is processed while all other calls wait. A stream with more is aborted. */
export const MAX_EVENT_LINES = 20_000

/** An event is larger than `MAX_EVENT_BYTES`, or has more lines than `MAX_EVENT_LINES`. */
export class EventTooLargeError extends UpstreamError {
  constructor(most: string) {
    super(`an event is larger than ${most}`)
    this.name = 'EventTooLargeError'
  }
}

/**
 * Splits an event stream (WHATWG HTML, "Server-sent events") into events without changing bytes. The result does not depend on the chunks
 * of the stream. Bytes after the last blank line are not an event and are dropped, as the standard requires.
 */
export class SseSplitter {
  readonly #event = new ByteBuffer()
  #lineIsEmpty = true
  #afterCr = false
  /** A blank line ended with CR, so a LF that belongs to it may follow. */
  #complete = false

  /** Returns the events that this chunk completes. */
  push(chunk: Uint8Array): Uint8Array[] {
    const events: Uint8Array[] = []
    let start = 0
    let at = 0
    while (at < chunk.length) {
      if (this.#complete) {
        if (chunk[at] === LF) at++
        events.push(this.#take(chunk.subarray(start, at)))
        start = at
        continue
      }
      at = this.#lineIsEmpty ? at : endOfLine(chunk, at)
      if (at < chunk.length && this.#step(chunk[at++] ?? 0)) {
        if (chunk[at - 1] === CR) continue
        events.push(this.#take(chunk.subarray(start, at)))
        start = at
      }
    }
    this.#keep(chunk.subarray(start))
    return events
  }

  /** Call at the end of the stream. Returns the last event if its blank line ended with CR. */
  end(): Uint8Array[] {
    return this.#complete ? [this.#take(new Uint8Array(0))] : []
  }

  /** Handles one byte at the start or the end of a line. Returns true if it ended a blank line. */
  #step(byte: number): boolean {
    if (byte === LF && this.#afterCr) {
      this.#afterCr = false
      return false
    }
    this.#afterCr = byte === CR
    if (byte !== LF && byte !== CR) {
      this.#lineIsEmpty = false
      return false
    }
    const blank = this.#lineIsEmpty
    this.#lineIsEmpty = true
    if (blank && byte === CR) this.#complete = true
    return blank
  }

  #keep(part: Uint8Array): void {
    if (part.length === 0) return
    if (this.#event.size + part.length > MAX_EVENT_BYTES) throw new EventTooLargeError(`${MAX_EVENT_BYTES} bytes`)
    this.#event.append(part)
  }

  #take(last: Uint8Array): Uint8Array {
    this.#event.append(last)
    const event = this.#event.take()
    this.#lineIsEmpty = true
    this.#afterCr = false
    this.#complete = false
    return event
  }
}

/** Bytes of the first section in which the end of a line is searched; each further section is twice as long. */
const FIRST_SEARCH_BYTES = 64

/**
 * Returns where the line at `from` ends in the chunk, or the chunk's length. A search for LF through the whole chunk, repeated for each
 * line that ends with CR, would be quadratic.
 */
function endOfLine(chunk: Uint8Array, from: number): number {
  let start = from
  for (let size = FIRST_SEARCH_BYTES; start < chunk.length; size *= 2) {
    const part = chunk.subarray(start, start + size)
    const lf = part.indexOf(LF)
    const cr = (lf === -1 ? part : part.subarray(0, lf)).indexOf(CR)
    if (cr !== -1) return start + cr
    if (lf !== -1) return start + lf
    start += part.length
  }
  return chunk.length
}

/** Skipped at the start of a stream (WHATWG HTML, "Parsing an event stream"). */
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

/**
 * Yields the lines of an event, each with its terminator.
 * @throws EventTooLargeError
 */
function* lines(event: Uint8Array): Generator<Uint8Array> {
  const marked = BYTE_ORDER_MARK.equals(event.subarray(0, BYTE_ORDER_MARK.length))
  let start = marked ? BYTE_ORDER_MARK.length : 0
  for (let count = 1; start < event.length; count++) {
    if (count > MAX_EVENT_LINES) throw new EventTooLargeError(`${MAX_EVENT_LINES} lines`)
    let end = endOfLine(event, start)
    end += event[end] === CR && event[end + 1] === LF ? 2 : 1
    yield event.subarray(start, end)
    start = end
  }
}

const DATA = Buffer.from('data')
const ID = Buffer.from('id')
const EVENT = Buffer.from('event')

function isField(line: Uint8Array, name: Buffer): boolean {
  if (line.length < name.length || name.compare(line, 0, name.length) !== 0) return false
  const next = line[name.length]
  return next === undefined || next === COLON || next === LF || next === CR
}

function isDataLine(line: Uint8Array): boolean {
  return isField(line, DATA)
}

/** Returns the value of a field, without name, one leading space and terminator. */
function fieldValue(line: Uint8Array, name: Buffer): Uint8Array {
  // A line has one terminator, at its end. Searching for it would be a second pass over the event.
  let end = line.length
  if (line[end - 1] === LF) end--
  if (line[end - 1] === CR) end--
  let start = name.length
  if (line[start] === COLON) start++
  if (line[start] === SPACE) start++
  return line.subarray(Math.min(start, end), end)
}

const LINE_FEED = Buffer.from('\n')

/** Returns the data of an event, its lines joined by LF, or null if it has none. */
export function eventData(event: Uint8Array): Uint8Array | null {
  const found: Uint8Array[] = []
  for (const line of lines(event)) if (isDataLine(line)) found.push(fieldValue(line, DATA))
  if (found.length <= 1) return found[0] ?? null
  return Buffer.concat(found.flatMap((part, index) => (index === 0 ? [part] : [LINE_FEED, part])))
}

/** Returns the event with other data; `id`, `event`, `retry` and comments are unchanged. */
export function withEventData(event: Uint8Array, data: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = []
  let written = false
  for (const line of lines(event)) {
    if (!isDataLine(line)) parts.push(line)
    else if (!written) {
      parts.push(dataLines(data))
      written = true
    }
  }
  return Buffer.concat(parts)
}

/** Returns the id of an event, with which its stream can be resumed, or null if it has none. */
export function eventId(event: Uint8Array): string | null {
  let id: string | null = null
  for (const line of lines(event)) if (isField(line, ID)) id = Buffer.from(fieldValue(line, ID)).toString('utf8')
  return id === '' ? null : id
}

/** Returns the name of an event, or null if it has none. */
export function eventName(event: Uint8Array): string | null {
  let name: string | null = null
  for (const line of lines(event))
    if (isField(line, EVENT)) name = Buffer.from(fieldValue(line, EVENT)).toString('utf8')
  return name === '' ? null : name
}

/** Returns the event with another id, or without one. Other fields are unchanged. */
export function withEventId(event: Uint8Array, id: string | null): Uint8Array {
  const rest = lines(event).filter((line) => !isField(line, ID))
  return Buffer.concat(id === null ? [...rest] : [Buffer.from(`id: ${id}\n`), ...rest])
}

/**
 * Returns an event with one JSON message on one line. Line breaks in JSON are white space: as separate lines, those of a large body
 * would exceed `MAX_EVENT_LINES`.
 */
export function messageEvent(json: Uint8Array): Uint8Array {
  const text = Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8')
  return Buffer.from(`event: message\ndata: ${text.replaceAll(/[\r\n]/g, ' ')}\n\n`)
}

/** Returns a comment, which keeps a connection open and is ignored by readers. */
export function commentEvent(text: string): Uint8Array {
  return Buffer.from(`: ${text}\n\n`)
}

function dataLines(data: Uint8Array): Uint8Array {
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8')
  return Buffer.from(
    `${text
      .split(/\r\n|\r|\n/)
      .map((line) => `data: ${line}`)
      .join('\n')}\n`,
  )
}
