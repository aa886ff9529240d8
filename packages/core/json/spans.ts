import { skipSpace } from './check.ts'
import { bufferOf, nameOf, textOf } from './names.ts'
import { skipTrusted } from './trusted.ts'

/** Byte range: `start` included, `end` not. */
export type Span = readonly [start: number, end: number]

const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/**
 * The byte range of the value that `path` leads to through nested objects; an empty path is the whole value. Null when a
 * member is missing or a value on the way is not an object. The input must have passed `checkJson`.
 */
export function findSpan(bytes: Uint8Array, path: readonly string[]): Span | null {
  const start = findValue(bytes, skipSpace(bytes, 0), path)
  return start === null ? null : [start, skipValue(bytes, start)]
}

/**
 * Returns where the value begins that `path` leads to from the value at `from`, or after the white space there; null as `findSpan`. A step 0
 * leads to the first element of an array.
 */
export function findValue(bytes: Uint8Array, from: number, path: readonly (string | 0)[]): number | null {
  let start = skipSpace(bytes, from)
  for (const step of path) {
    const valueStart = step === 0 ? findFirst(bytes, start) : findMember(bytes, start, step)
    if (valueStart === null) return null
    start = valueStart
  }
  return start
}

function findFirst(bytes: Uint8Array, array: number): number | null {
  if (bytes[array] !== OPEN_ARRAY) return null
  const start = skipSpace(bytes, array + 1)
  return bytes[start] === CLOSE_ARRAY ? null : start
}

const SPACES = Buffer.from(' \n\r\t')

/**
 * Finds values within the elements of an array, from the first to the last, and reads no byte twice, however many there are. The input must have
 * passed `checkJson`.
 */
export class ElementValues {
  readonly #bytes: Uint8Array
  readonly #path: readonly string[]
  /** Where the element with this index starts. */
  #start: number
  #index = 0

  /** `array`: where the array starts. `path`: leads to the value from an element. */
  constructor(bytes: Uint8Array, array: number, path: readonly string[]) {
    this.#bytes = bytes
    this.#path = path
    this.#start = skipSpace(bytes, array + 1)
  }

  /** Returns the range of the value in an element behind those of earlier calls; null if the element has none. */
  spanIn(index: number): Span | null {
    for (; this.#index < index; this.#index++) this.#next(skipValue(this.#bytes, this.#start))
    const start = findValue(this.#bytes, this.#start, this.#path)
    if (start === null) return null
    const end = skipValue(this.#bytes, start)
    this.#next(skipRest(this.#bytes, end, this.#path.length))
    this.#index++
    return [start, end]
  }

  #next(end: number): void {
    this.#start = skipSpace(this.#bytes, skipSpace(this.#bytes, end) + 1)
  }
}

/**
 * Returns the text of a value as it is written, without white space outside of strings: so numbers keep their digits. The input must have passed
 * `checkJson`.
 */
export function compactText(bytes: Uint8Array, [start, end]: Span): string {
  const value = bufferOf(bytes.subarray(start, end))
  if (!SPACES.some((space) => value.includes(space))) return textOf(value, 0, value.length)
  const compact = new Uint8Array(value.length)
  let to = 0
  for (let at = 0; at < value.length; ) {
    const byte = value[at] ?? 0
    if (byte === QUOTE) {
      const next = skipTrusted(value, at)
      compact.set(value.subarray(at, next), to)
      to += next - at
      at = next
    } else {
      if (byte > SPACE) compact[to++] = byte
      at++
    }
  }
  return textOf(compact, 0, to)
}

/** Returns the range of each element of the array at `array`, in order. The input must have passed `checkJson`. */
export function elementSpans(bytes: Uint8Array, array: number): readonly Span[] {
  const spans: Span[] = []
  if (bytes[array] !== OPEN_ARRAY) return spans
  let start = skipSpace(bytes, array + 1)
  while (start < bytes.length && bytes[start] !== CLOSE_ARRAY) {
    const end = skipValue(bytes, start)
    spans.push([start, end])
    const after = skipSpace(bytes, end)
    start = bytes[after] === COMMA ? skipSpace(bytes, after + 1) : after
  }
  return spans
}

/** Names of members; null: the member is cut out, otherwise what is cut out of its value. */
type Cut = Map<string, Cut | null>

/**
 * The same bytes without the members that `paths` lead to: each is cut out with one comma, every other byte stays as it
 * was. A path that leads nowhere cuts nothing; when nothing is cut the answer is the input itself.
 * One pass for all paths, since callers can name as many as their bodies have members. The input must have passed `checkJson`.
 */
export function withoutMembers(bytes: Uint8Array, paths: readonly (readonly string[])[]): Uint8Array {
  if (paths.length === 0) return bytes
  const spans: Span[] = []
  cutIn(bytes, skipSpace(bytes, 0), cutOf(paths), spans)
  return withoutSpans(bytes, spans)
}

/**
 * Returns the bytes without those elements of the array at `array` for which `isKept` returns false: each is cut out with one comma. Returns
 * the input itself if all are kept. The input must have passed `checkJson`.
 */
export function withoutElements(bytes: Uint8Array, array: number, isKept: (index: number) => boolean): Uint8Array {
  const spans: Span[] = []
  let keptEnd = array + 1
  let start = skipSpace(bytes, keptEnd)
  for (let index = 0; bytes[start] !== CLOSE_ARRAY; index++) {
    const end = skipValue(bytes, start)
    const after = skipSpace(bytes, end)
    const next = bytes[after] === COMMA ? skipSpace(bytes, after + 1) : null
    if (isKept(index)) keptEnd = end
    else cutOut(spans, next === null ? [keptEnd, end] : [start, next])
    if (next === null) break
    start = next
  }
  return withoutSpans(bytes, spans)
}

/** Adds a span that ends behind all others, and joins it with those that it reaches. */
function cutOut(spans: Span[], [start, end]: Span): void {
  let first = start
  for (let last = spans.at(-1); last !== undefined && last[1] >= start; last = spans.at(-1)) {
    first = Math.min(first, last[0])
    spans.pop()
  }
  spans.push([first, end])
}

function withoutSpans(bytes: Uint8Array, spans: readonly Span[]): Uint8Array {
  if (spans.length === 0) return bytes
  const rest = new Uint8Array(spans.reduce((length, [start, end]) => length - (end - start), bytes.length))
  let from = 0
  let to = 0
  for (const [start, end] of [...spans, [bytes.length, bytes.length] as const]) {
    rest.set(bytes.subarray(from, start), to)
    to += start - from
    from = end
  }
  return rest
}

function cutOf(paths: readonly (readonly string[])[]): Cut {
  const root: Cut = new Map()
  for (const path of paths) {
    let at: Cut | null = root
    for (const [depth, name] of path.entries()) {
      if (at === null) break
      const known: Cut | null | undefined = at.get(name)
      const next: Cut | null = depth === path.length - 1 || known === null ? null : (known ?? new Map())
      at.set(name, next)
      at = next
    }
  }
  return root
}

/** Adds what is cut out of the object at `object`, in order. */
function cutIn(bytes: Uint8Array, object: number, cut: Cut, spans: Span[]): void {
  if (bytes[object] !== OPEN_OBJECT || cut.size === 0) return
  let keptEnd = object + 1
  let nameStart = skipSpace(bytes, keptEnd)
  while (bytes[nameStart] === QUOTE) {
    const nameEnd = skipTrusted(bytes, nameStart)
    const valueStart = skipSpace(bytes, skipSpace(bytes, nameEnd) + 1)
    const end = skipValue(bytes, valueStart)
    const after = skipSpace(bytes, end)
    const next = bytes[after] === COMMA ? skipSpace(bytes, after + 1) : null
    const inner = cutNamed(bytes, [nameStart + 1, nameEnd - 1], cut)
    if (inner === null) {
      // With a follower the comma behind goes, else everything behind the last member that stays: its comma, or white space.
      cutOut(spans, next === null ? [keptEnd, end] : [nameStart, next])
    } else {
      if (inner !== undefined) cutIn(bytes, valueStart, inner, spans)
      keptEnd = end
    }
    if (next === null) return
    nameStart = next
  }
}

/** Few names are compared where they stand. */
const COMPARED_NAMES = 8

/** Undefined: the member stays as it is. */
function cutNamed(bytes: Uint8Array, [start, end]: Span, cut: Cut): Cut | null | undefined {
  if (cut.size > COMPARED_NAMES) return cut.get(nameOf(bytes, start, end))
  for (const [name, inner] of cut) if (isNamed(bytes, start, end, name)) return inner
  return undefined
}

/** Where the value of a member starts; null: the object has none of this name, or is none. */
function findMember(bytes: Uint8Array, object: number, wanted: string): number | null {
  if (bytes[object] !== OPEN_OBJECT) return null
  let nameStart = skipSpace(bytes, object + 1)
  while (bytes[nameStart] === QUOTE) {
    const nameEnd = skipTrusted(bytes, nameStart)
    const valueStart = skipSpace(bytes, skipSpace(bytes, nameEnd) + 1)
    if (isNamed(bytes, nameStart + 1, nameEnd - 1, wanted)) return valueStart
    nameStart = skipSpace(bytes, skipSpace(bytes, skipValue(bytes, valueStart)) + 1)
  }
  return null
}

/** Characters that denote a control character after a backslash; every other character denotes itself. */
const CONTROLS: ReadonlyMap<number, number> = new Map(
  Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }).map(([letter, control]) => [
    letter.charCodeAt(0),
    control.charCodeAt(0),
  ]),
)
const LOWER_U = 0x75

/** Compares UTF-8 bytes with a name without decoding them; decodes only from the first byte that is not ASCII. */
function isNamed(bytes: Uint8Array, start: number, end: number, wanted: string): boolean {
  let at = start
  let index = 0
  for (; at < end && index < wanted.length; index++) {
    const unit = wanted.charCodeAt(index)
    const byte = bytes[at] ?? 0
    if (byte > 0x7f) return unit > 0x7f && nameOf(bytes, start, end) === wanted
    if (byte !== BACKSLASH) {
      if (byte !== unit) return false
      at++
      continue
    }
    const letter = bytes[at + 1] ?? 0
    const isCode = letter === LOWER_U
    const code = isCode ? Number.parseInt(textOf(bytes, at + 2, at + 6), 16) : (CONTROLS.get(letter) ?? letter)
    if (code !== unit) return false
    at += isCode ? 6 : 2
  }
  return at === end && index === wanted.length
}

/** Byte after the value that starts at `at`, of input that is known to be JSON. */
export function skipValue(bytes: Uint8Array, at: number): number {
  return skipRest(bytes, at, 0)
}

/** Byte after the value that `open` containers around `at` belong to, the outermost of them; with 0, after the value that starts at `at`. */
function skipRest(bytes: Uint8Array, at: number, open: number): number {
  let depth = open
  let next = at
  do {
    const byte = bytes[next]
    if (byte === QUOTE) next = skipTrusted(bytes, next)
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth++
      next++
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      depth--
      next++
    } else if (depth > 0) next = skipPlain(bytes, next + 1)
    else next = skipWord(bytes, next)
  } while (depth > 0 && next < bytes.length)
  return next
}

/** By byte: 1 where a string or a container begins or ends. */
const MEETS = new Uint8Array(256)
for (const byte of [QUOTE, OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY]) MEETS[byte] = 1

/** The first byte from `at` on at which a string or a container begins or ends; the end of the input where there is none. */
function skipPlain(bytes: Uint8Array, at: number): number {
  let next = at
  while (next < bytes.length && MEETS[bytes[next] ?? 0] === 0) next++
  return next
}

/** Byte after a number, `true`, `false` or `null`. */
function skipWord(bytes: Uint8Array, at: number): number {
  let next = at
  for (let byte = bytes[next]; byte !== undefined && !endsWord(byte); byte = bytes[next]) next++
  return next
}

function endsWord(byte: number): boolean {
  return byte <= 0x20 || byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT
}
