import type { IncomingHttpHeaders } from 'node:http'
import { HeadReader, MalformedResponseError, type ResponseHead } from './head.ts'

/** Callbacks of a parser, in this order. */
export interface ResponseEvents {
  /** Not called for interim heads (1xx). */
  head(status: number, headers: IncomingHttpHeaders): void
  /** Called at most once per `push`, with a slice of the pushed bytes. */
  data(bytes: Buffer): void
}

/** Maximum size of a head in bytes; interim heads and trailers count separately. */
export const MAX_HEAD_BYTES = 32 * 1024
/** Maximum size of a chunk size line, or of one trailer, in bytes. */
const MAX_LINE_BYTES = 4 * 1024
/** Maximum number of interim heads. */
const MAX_INTERIM = 16

const LF = 10
const CR = 13
const [DIGIT_0, DIGIT_9, LOWER_A, LOWER_F] = [48, 57, 97, 102]
/** The bit that distinguishes lower case from upper case letters. */
const LOWER_CASE = 32
const HEAD_END = Buffer.from('\r\n\r\n')
const HEAD_START = Buffer.from('HTTP/1.')

const LINE = /^[\t\x20-\x7e\x80-\xff]*\r\n$/
/** Maximum number of hex digits of a chunk size. */
const MAX_SIZE_DIGITS = 12
/** RFC 9112, section 7.1: the size, then extensions, which are ignored. */
const CHUNK_SIZE = /^([0-9a-f]{1,12})(?:[\t ]*;[^\r]*)?\r\n$/i

/** `open`: until the connection ends. `size`, `chunk`, `gap`, `trailer`: the parts of a chunked body. */
type State = 'head' | 'sized' | 'open' | 'size' | 'chunk' | 'gap' | 'trailer' | 'done'

/**
 * Parses consecutive HTTP/1.x responses (RFC 9112), split anywhere. Where the RFC leaves a choice, it is strict: lines end with CR LF only, folded
 * lines are refused, and so is every message with an ambiguous length. Throws MalformedResponseError; the connection is then unusable.
 */
export class ResponseParser {
  readonly #events: ResponseEvents
  readonly #heads = new HeadReader()
  #state: State = 'done'
  #bodiless = false
  #keeps = false
  #hintMs: number | null = null
  #interim = 0
  /** Remaining bytes of the current body or chunk. */
  #left = 0
  #trailerBytes = 0
  #line = ''
  /** Beginning of a head that spans several reads. */
  #partial: Buffer | null = null
  #filled = 0
  /** Offset up to which the current read is consumed. */
  #at = 0
  /** Range of the body data in the current read; empty while `#dataTo` is 0. */
  #dataFrom = 0
  #dataTo = 0

  constructor(events: ResponseEvents) {
    this.#events = events
  }

  /** Called when a request was sent; `method` decides whether its response has a body. */
  begin(method: string): void {
    this.#state = 'head'
    this.#bodiless = method === 'HEAD'
    this.#interim = 0
  }

  /** The response is complete. */
  get done(): boolean {
    return this.#state === 'done'
  }

  /** Whether the server keeps the connection open after this response. */
  get keeps(): boolean {
    return this.#keeps
  }

  /** Keep-alive time stated by the server in milliseconds; null when absent. */
  get hintMs(): number | null {
    return this.#hintMs
  }

  /**
   * Parses the bytes of one read and takes ownership of them. Returns how many belong to the response. Data of several chunks is moved together, so
   * that the consumer gets one piece per read.
   */
  push(bytes: Buffer): number {
    this.#at = 0
    this.#dataFrom = 0
    this.#dataTo = 0
    try {
      while (this.#at < bytes.length && this.#state !== 'done') this.#step(bytes)
    } finally {
      this.#emitData(bytes)
    }
    return this.#at
  }

  /** Called when the connection ends. Throws when the response is incomplete. */
  close(): void {
    if (this.#state === 'open') this.#state = 'done'
    if (this.#state !== 'done') throw new MalformedResponseError('the connection ended before the response did')
  }

  #step(bytes: Buffer): void {
    switch (this.#state) {
      case 'head':
        this.#readHead(bytes)
        break
      case 'sized':
        if (this.#readSized(bytes)) this.#state = 'done'
        break
      case 'chunk':
        if (this.#readSized(bytes)) this.#state = 'gap'
        break
      case 'open':
        this.#take(bytes, bytes.length)
        break
      default:
        this.#readLine(bytes)
    }
  }

  #take(bytes: Buffer, end: number): void {
    const start = this.#at
    this.#at = end
    if (this.#dataTo === 0) {
      this.#dataFrom = start
      this.#dataTo = end
      return
    }
    bytes.copy(bytes, this.#dataTo, start, end)
    this.#dataTo += end - start
  }

  #emitData(bytes: Buffer): void {
    const isAll = this.#dataFrom === 0 && this.#dataTo === bytes.length
    if (this.#dataTo > 0) this.#events.data(isAll ? bytes : bytes.subarray(this.#dataFrom, this.#dataTo))
  }

  /** Returns true when the announced length has arrived. */
  #readSized(bytes: Buffer): boolean {
    const end = Math.min(bytes.length, this.#at + this.#left)
    this.#left -= end - this.#at
    this.#take(bytes, end)
    return this.#left === 0
  }

  #readHead(bytes: Buffer): void {
    const again = this.#filled === 0 ? this.#heads.again(bytes, this.#at) : null
    if (again !== null) {
      this.#at = this.#heads.end
      this.#opened(again)
      return
    }
    const end = this.#filled === 0 ? bytes.indexOf(HEAD_END, this.#at) : -1
    if (end === -1) {
      this.#collectHead(bytes)
      return
    }
    const start = this.#at
    if (end - start > MAX_HEAD_BYTES) throw tooLarge()
    this.#at = end + HEAD_END.length
    this.#opened(this.#heads.read(bytes.toString('latin1', start, end + 2)))
  }

  /** A head in several reads is rare: it is joined first. Invalid input is refused before the head is complete. */
  #collectHead(bytes: Buffer): void {
    this.#partial ??= Buffer.allocUnsafe(MAX_HEAD_BYTES)
    const partial = this.#partial
    const from = this.#filled
    this.#filled += bytes.copy(partial, from, this.#at)
    const have = partial.subarray(0, this.#filled)
    const end = have.indexOf(HEAD_END, Math.max(0, from - HEAD_END.length + 1))
    if (end === -1) {
      if (!startsWell(have)) throw new MalformedResponseError('it does not begin like HTTP/1.x')
      if (hasBareLineFeed(have, from)) throw new MalformedResponseError('a line of its head does not end with CR LF')
      if (this.#filled === MAX_HEAD_BYTES) throw tooLarge()
      this.#at = bytes.length
      return
    }
    this.#at += end + HEAD_END.length - from
    this.#filled = 0
    this.#partial = null
    this.#opened(this.#heads.read(have.toString('latin1', 0, end + 2)))
  }

  #opened(head: ResponseHead): void {
    const { status } = head
    if (status < 200) {
      if (status === 101) throw new MalformedResponseError('it switches protocols without a request to')
      if (++this.#interim > MAX_INTERIM)
        throw new MalformedResponseError(`more than ${MAX_INTERIM} interim heads come before it`)
      return
    }
    this.#keeps = head.keeps
    this.#hintMs = head.hintMs
    const { length } = head
    if (this.#bodiless || status === 204 || status === 304 || length === 0) this.#state = 'done'
    else if (length === 'chunked') this.#state = 'size'
    else if (length === 'open') this.#state = 'open'
    else {
      this.#left = length
      this.#state = 'sized'
    }
    if (this.#state === 'open') this.#keeps = false
    this.#events.head(status, head.headers)
  }

  #readLine(bytes: Buffer): void {
    if (this.#line === '' && (this.#state === 'size' ? this.#readSize(bytes) : this.#readEmpty(bytes))) return
    const lf = bytes.indexOf(LF, this.#at)
    const end = lf === -1 ? bytes.length : lf + 1
    if (this.#line.length + end - this.#at > MAX_LINE_BYTES)
      throw new MalformedResponseError('a line of its body is too long')
    this.#line += bytes.toString('latin1', this.#at, end)
    this.#at = end
    if (lf === -1) return
    const line = this.#line
    this.#line = ''
    if (!LINE.test(line)) throw new MalformedResponseError('a line of its body does not end with CR LF')
    this.#tookLine(line)
  }

  /** Consumes the empty line after a chunk or after the last one, if complete. Returns false, consuming nothing, otherwise. */
  #readEmpty(bytes: Buffer): boolean {
    if (bytes[this.#at] !== CR || bytes[this.#at + 1] !== LF) return false
    this.#at += 2
    this.#state = this.#state === 'gap' ? 'size' : 'done'
    return true
  }

  /** Consumes a line with only a chunk size, if complete: the usual case. Returns false, consuming nothing, otherwise. */
  #readSize(bytes: Buffer): boolean {
    let size = 0
    let at = this.#at
    for (let digit = hexDigit(bytes[at]); digit !== -1; digit = hexDigit(bytes[at])) {
      size = size * 16 + digit
      at++
    }
    const digits = at - this.#at
    if (digits === 0 || digits > MAX_SIZE_DIGITS || bytes[at] !== CR || bytes[at + 1] !== LF) return false
    this.#at = at + 2
    this.#begins(size)
    return true
  }

  #begins(chunk: number): void {
    this.#left = chunk
    this.#state = chunk === 0 ? 'trailer' : 'chunk'
    this.#trailerBytes = 0
  }

  #tookLine(line: string): void {
    if (this.#state === 'gap') {
      if (line !== '\r\n') throw new MalformedResponseError('a chunk is longer than it says')
      this.#state = 'size'
    } else if (this.#state === 'size') {
      const digits = CHUNK_SIZE.exec(line)?.[1]
      if (digits === undefined) throw new MalformedResponseError('the size of a chunk cannot be read')
      this.#begins(Number.parseInt(digits, 16))
    } else if (line === '\r\n') {
      this.#state = 'done'
    } else {
      // Trailers are discarded: they have no consumer, and merging them into the head is a known trap (RFC 9110, section 6.5.1).
      this.#trailerBytes += line.length
      if (this.#trailerBytes > MAX_HEAD_BYTES) throw tooLarge()
    }
  }
}

function hexDigit(byte: number | undefined): number {
  if (byte === undefined) return -1
  if (byte >= DIGIT_0 && byte <= DIGIT_9) return byte - DIGIT_0
  const lower = byte | LOWER_CASE
  return lower >= LOWER_A && lower <= LOWER_F ? lower - LOWER_A + 10 : -1
}

function tooLarge(): MalformedResponseError {
  return new MalformedResponseError(`its head or its trailers are larger than ${MAX_HEAD_BYTES} bytes`)
}

function startsWell(have: Buffer): boolean {
  const length = Math.min(have.length, HEAD_START.length)
  return have.compare(HEAD_START, 0, length, 0, length) === 0
}

function hasBareLineFeed(have: Buffer, from: number): boolean {
  for (let lf = have.indexOf(LF, from); lf !== -1; lf = have.indexOf(LF, lf + 1)) if (have[lf - 1] !== CR) return true
  return false
}
