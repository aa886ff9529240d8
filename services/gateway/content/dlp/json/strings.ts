import { isAscii } from 'node:buffer'
import { runAtOnce, type Steps } from '@plat/core'
import type { Hit } from '../scan/scan-state.ts'
import { type Scanner, SHORTEST_CHARS } from '../scan/scanner.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d])

/** A string without quotes, or the text between two strings, with the hits in it. */
export interface ScannedText {
  /** Bytes in the JSON text. */
  readonly start: number
  readonly end: number
  /** Places count in `text` where it is there, else in the JSON text. */
  readonly hits: readonly Hit[]
  /** The string decoded, where its bytes do not stand for themselves. */
  readonly text: string | null
  /** `gap`: numbers and punctuation between strings. */
  readonly kind: 'value' | 'name' | 'gap'
}

/** The hits in a JSON text. */
export interface Findings {
  readonly found: readonly ScannedText[]
  /** There was more text than may be scanned, and the rest was not looked at. */
  readonly isCut: boolean
}

/** No built-in detector finds anything in a number of fewer digits. */
const LONG_NUMBER = /\d{8}/
/** Strings and literals of more characters are scanned in steps. */
const LONG_CHARS = 4096
/** Characters that are read one by one behind an escaped quote. */
const AFTER_ESCAPED_QUOTE = 1024
/** By code: 1 in a number, `true`, `false` or `null`, or in what is in its place in a text that is not JSON. */
const IN_LITERAL = new Uint8Array(256)
for (const code of Buffer.from('0123456789+-._ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'))
  IN_LITERAL[code] = 1

/**
 * Looks through the strings of a JSON text, names of members included, and the numbers between them. Never throws, whatever the
 * bytes are: what is not JSON is read as far as it looks like it. One-byte text stands for the bytes, since no built-in detector
 * knows a character beyond ASCII; only what is escaped, or what an expression of somebody's own may speak of, is decoded. A step after
 * some strings, and after each hit of an expression in a long one.
 */
export function findInJson(bytes: Uint8Array, scanner: Scanner, maxChars: number): Steps<Findings> {
  return new Strings(bytes, scanner, maxChars).find()
}

class Strings {
  readonly #bytes: Buffer
  readonly #text: string
  readonly #isAscii: boolean
  /** No expression of the profile's own matches anywhere in the message. */
  #isOwnAbsent = false
  readonly #scanner: Scanner
  readonly #found: ScannedText[] = []
  /** Strings of fewer characters are not scanned: expressions of a profile's own may match a single one. */
  #shortest: number
  #left: number
  #isCut = false
  #backslash = -1
  /** The place of the last step. */
  #step = 0

  constructor(bytes: Uint8Array, scanner: Scanner, maxChars: number) {
    this.#bytes = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#text = this.#bytes.toString('latin1')
    this.#isAscii = isAscii(this.#bytes)
    this.#scanner = scanner
    this.#shortest = Math.min(SHORTEST_CHARS, scanner.shortestOwn)
    this.#left = maxChars
  }

  /** Searches a message once as a whole if its strings are not escaped: mostly an expression matches nowhere. */
  *#searchOwn(): Steps<void> {
    // Members between strings are not counted by `#left`.
    const isRead = this.#scanner.needsText && this.#text.length <= 2 * this.#left && this.#isAscii
    if (!isRead || this.#backslashAfter(0) < this.#text.length) return
    this.#isOwnAbsent = yield* this.#scanner.ownAbsentFrom(this.#text)
    if (this.#isOwnAbsent) this.#shortest = SHORTEST_CHARS
  }

  *find(): Steps<Findings> {
    const text = this.#text
    yield* this.#searchOwn()
    let at = 0
    while (at < text.length && !this.#isCut) {
      const quote = text.indexOf('"', at)
      const open = quote === -1 ? text.length : quote
      if (open - at >= this.#shortest) {
        if (this.#scanner.needsText) yield* this.#literals(at, open)
        else yield* this.#gap(at, open)
      }
      if (quote === -1) break
      const close = this.#endOfString(open + 1)
      if (close - open > LONG_CHARS) yield* this.#longString(open + 1, close)
      else if (close - open - 1 >= this.#shortest) this.#string(open + 1, close)
      at = close + 1
      if (this.#isStep(at)) yield
    }
    return { found: this.#found, isCut: this.#isCut }
  }

  /** The closing quote; the end of the text where there is none. */
  #endOfString(from: number): number {
    const text = this.#text
    for (let at = from; ; ) {
      const quote = text.indexOf('"', at)
      if (quote === -1) return text.length
      let first = quote
      while (first > at && text.charCodeAt(first - 1) === BACKSLASH) first--
      if ((quote - first) % 2 === 0) return quote
      // More escaped quotes are likely: a native search for each would take most of the time.
      at = quote + 1
      for (const near = Math.min(at + AFTER_ESCAPED_QUOTE, text.length); at < near; at++) {
        const code = text.charCodeAt(at)
        if (code === QUOTE) return at
        if (code === BACKSLASH) at++
      }
    }
  }

  *#gap(start: number, end: number): Steps<void> {
    if (end - start <= SHORTEST_CHARS || !LONG_NUMBER.test(this.#text.slice(start, end))) return
    if (end - start <= LONG_CHARS) this.#scanGap(start, end)
    else yield* this.#longGap(start, end)
  }

  /** Each literal by itself: an expression of a profile's own must not match the punctuation, which cannot be replaced. */
  *#literals(start: number, end: number): Steps<void> {
    for (let at = start; at < end && !this.#isCut; at++) {
      const first = at
      while (at < end && IN_LITERAL[this.#text.charCodeAt(at)] === 1) at++
      if (at - first < this.#shortest) continue
      if (at - first > LONG_CHARS) yield* this.#longGap(first, at)
      else this.#scanGap(first, at)
      if (this.#isStep(at)) yield
    }
  }

  #scanGap(start: number, end: number): void {
    if (!this.#takes(end - start)) return
    this.#addGap(start, end, this.#scanner.scan(this.#text, start, end, { isOwnAbsent: this.#isOwnAbsent }))
  }

  *#longGap(start: number, end: number): Steps<void> {
    if (!this.#takes(end - start)) return
    const manner = { isOwnAbsent: this.#isOwnAbsent }
    this.#addGap(start, end, yield* this.#scanner.scanning(this.#text, start, end, manner))
  }

  #addGap(start: number, end: number, hits: readonly Hit[]): void {
    if (hits.length > 0) this.#found.push({ start, end, hits, text: null, kind: 'gap' })
  }

  /** Whether a step ends here: one takes about as long as a long string. */
  #isStep(at: number): boolean {
    if (at - this.#step < LONG_CHARS) return false
    this.#step = at
    return true
  }

  #string(start: number, end: number): void {
    if (!this.#takes(end - start)) return
    const hasEscape = this.#backslashAfter(start) < end
    const text = hasEscape || this.#scanner.needsText ? this.#decoded(start, end, hasEscape) : null
    const context = { text: this.#text, end: start - 1 }
    const hits =
      text === null
        ? this.#scanner.scan(this.#text, start, end, { context })
        : this.#scanner.scan(text, 0, text.length, { context, isOwnAbsent: this.#isOwnAbsent })
    this.#add({ start, end, hits, text })
  }

  *#longString(start: number, end: number): Steps<void> {
    if (!this.#takes(end - start)) return
    const hasEscape = this.#backslashAfter(start) < end
    const text = hasEscape || this.#scanner.needsText ? this.#decoded(start, end, hasEscape) : null
    const manner = { context: { text: this.#text, end: start - 1 }, isOwnAbsent: this.#isOwnAbsent }
    const hits =
      text === null
        ? yield* this.#scanner.scanning(this.#text, start, end, manner)
        : yield* this.#scanner.scanning(text, 0, text.length, manner)
    this.#add({ start, end, hits, text })
  }

  #add(string: Omit<ScannedText, 'kind'>): void {
    if (string.hits.length > 0) this.#found.push({ ...string, kind: this.#kindAt(string.end + 1) })
  }

  #decoded(start: number, end: number, hasEscape: boolean): string {
    if (this.#isAscii && !hasEscape) return this.#text.slice(start, end)
    return decoded(this.#bytes.toString('utf8', start, end))
  }

  /** The first backslash from here on. Found once, however many strings stand before it. */
  #backslashAfter(start: number): number {
    if (this.#backslash < start) {
      const next = this.#text.indexOf('\\', start)
      this.#backslash = next === -1 ? this.#text.length : next
    }
    return this.#backslash
  }

  /** A name is followed by a colon. */
  #kindAt(behind: number): 'value' | 'name' {
    let at = behind
    while (SPACES.has(this.#text.charCodeAt(at))) at++
    return this.#text.charCodeAt(at) === COLON ? 'name' : 'value'
  }

  /** Whether so many characters may still be scanned. */
  #takes(chars: number): boolean {
    this.#left -= chars
    this.#isCut = this.#left < 0
    return !this.#isCut
  }
}

/** The text of a string; of one that is not JSON the characters as they stand. */
function decoded(inside: string): string {
  try {
    const text: unknown = JSON.parse(`"${inside}"`)
    return typeof text === 'string' ? text : inside
  } catch {
    return inside
  }
}

/** The replacement of a hit. */
export function marker({ detector }: Hit): string {
  return `[REDACTED:${detector.id}]`
}

/** A text with its hits replaced; they are in order and do not overlap. */
export function redacted(text: string, hits: readonly Hit[]): string {
  return runAtOnce(redacting(text, hits))
}

/** The same in steps. */
export function* redacting(text: string, hits: readonly Hit[], mark: (hit: Hit) => string = marker): Steps<string> {
  let out = ''
  let at = 0
  for (const [count, hit] of hits.entries()) {
    out += text.slice(at, hit.start) + mark(hit)
    at = hit.end
    if (count % HITS_OF_STEP === HITS_OF_STEP - 1) yield
  }
  return out + text.slice(at)
}

/** Hits that are replaced in one step. */
const HITS_OF_STEP = 1024

/**
 * The same JSON with the hits replaced. Every byte outside the strings and numbers that hold one stays as it was. A step after
 * some texts.
 */
export function* redactedJson(bytes: Uint8Array, found: readonly ScannedText[]): Steps<Buffer> {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const pieces: Buffer[] = []
  let parts: Buffer[] = []
  let at = 0
  for (const one of found) {
    for (const { start, end, json } of yield* replacements(buffer, one)) {
      // Two hits in one number.
      if (start < at) continue
      parts.push(buffer.subarray(at, start), Buffer.from(json))
      at = end
    }
    if (parts.length < MOST_PARTS) continue
    pieces.push(Buffer.concat(parts))
    parts = []
    yield
  }
  return Buffer.concat([...pieces, ...parts, buffer.subarray(at)])
}

/** Parts that are joined in one step. */
const MOST_PARTS = 1024

interface Replacement {
  readonly start: number
  readonly end: number
  readonly json: string
}

function* replacements(bytes: Buffer, { start, end, hits, text, kind }: ScannedText): Steps<readonly Replacement[]> {
  if (text !== null) {
    const clean = yield* redacting(text, hits)
    yield
    return [{ start, end, json: JSON.stringify(clean).slice(1, -1) }]
  }
  if (kind !== 'gap') return hits.map((hit) => ({ start: hit.start, end: hit.end, json: marker(hit) }))
  return hits.map((hit) => ({ ...literalAround(bytes, hit), json: `"${marker(hit)}"` }))
}

/** A number, or another literal, can only be replaced as a whole. */
function literalAround(bytes: Buffer, hit: Hit): { readonly start: number; readonly end: number } {
  let { start, end } = hit
  while (IN_LITERAL[bytes[start - 1] ?? QUOTE] === 1) start--
  while (IN_LITERAL[bytes[end] ?? QUOTE] === 1) end++
  return { start, end }
}
