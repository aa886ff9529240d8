import { SPARE_BYTES, TOO_LONG, unescapeInto } from './unescape.ts'

/** Objects with more members than this remember their names as strings in a set. */
const COMPARED_NAMES = 16
/** Memory for one unescaped name. Those that need more, and names with escapes in deeper objects, are in a set as well. */
const COPIED_BYTES = 48
const COPIED_DEPTH = 64
/** `COPIED_BYTES` for each listed name. Scanning is synchronous and never nests, so one serves the process. */
const copies = Buffer.alloc(COPIED_DEPTH * COMPARED_NAMES * COPIED_BYTES)
/** A name before it is compared. */
const unescaped = Buffer.alloc(COPIED_BYTES)

const BACKSLASH = 0x5c
const NOTHING = new Uint8Array(0)

/**
 * The member names of every object that is open while JSON is scanned. Most objects are small: their names are compared byte by byte where they
 * stand, or unescaped in scratch memory, without making strings. All others use a set, so that an object of a million members stays linear.
 */
export class MemberNames {
  #bytes: Uint8Array = NOTHING
  #left = 0
  /** Whether there is an escape anywhere: most inputs have none. */
  #escapes = false
  /** Per depth: is it an object, and how many names are listed. */
  readonly #objects: boolean[] = []
  readonly #counts: number[] = []
  /** Per depth: the set once the list does not do. Null: no object of the input has needed one yet. */
  #sets: (Set<string> | null)[] | null = null
  /** Start and end of each listed name, and whether that is in `copies` instead of the input; `COMPARED_NAMES` slots a depth. */
  readonly #starts: number[] = []
  readonly #ends: number[] = []
  readonly #copied: boolean[] = []

  /** Begins another input, of at most `maxMembers` members in all objects together. */
  reset(bytes: Uint8Array, maxMembers: number): void {
    this.#bytes = bytes
    this.#left = maxMembers
    this.#escapes = bufferOf(bytes).indexOf(BACKSLASH) !== -1
  }

  /** Lets go of the input, so that the scratch keeps no body alive. */
  release(): void {
    this.#bytes = NOTHING
    this.#sets = null
  }

  open(depth: number, isObject: boolean): void {
    this.#objects[depth] = isObject
    this.#counts[depth] = 0
    if (this.#sets !== null) this.#sets[depth] = null
  }

  /** True once more members were seen than the input may have. */
  get isFull(): boolean {
    return this.#left < 0
  }

  isObject(depth: number): boolean {
    return this.#objects[depth] === true
  }

  /** Notes the name in bytes `start` to `end` (without quotes, with valid escapes only); true when the object had it already. */
  seen(depth: number, start: number, end: number): boolean {
    this.#left--
    const set = this.#sets?.[depth]
    if (set) return this.#seenIn(set, start, end)
    const count = this.#counts[depth] ?? 0
    if (count === COMPARED_NAMES) return this.#seenIn(this.#toSet(depth, count), start, end)
    if (!this.#escapes || !isEscaped(this.#bytes, start, end)) {
      if (this.#isListed(depth, this.#bytes, start, end)) return true
      this.#list(depth, start, end, false)
      return false
    }
    const length = depth < COPIED_DEPTH ? unescapeInto(unescaped, this.#bytes, start, end) : TOO_LONG
    if (length === TOO_LONG) return this.#seenIn(this.#toSet(depth, count), start, end)
    if (this.#isListed(depth, unescaped, 0, length)) return true
    const copy = (depth * COMPARED_NAMES + count) * COPIED_BYTES
    for (let at = 0; at < length; at++) copies[copy + at] = unescaped[at] ?? 0
    this.#list(depth, copy, copy + length, true)
    return false
  }

  /** Has the list of the open object at `depth` the name in bytes `start` to `end` of `source`? */
  #isListed(depth: number, source: Uint8Array, start: number, end: number): boolean {
    const length = end - start
    const base = depth * COMPARED_NAMES
    const count = this.#counts[depth] ?? 0
    for (let slot = base; slot < base + count; slot++) {
      const from = this.#starts[slot] ?? 0
      if ((this.#ends[slot] ?? 0) - from !== length) continue
      const listed = this.#copied[slot] ? copies : this.#bytes
      let at = 0
      while (at < length && listed[from + at] === source[start + at]) at++
      if (at === length) return true
    }
    return false
  }

  #list(depth: number, start: number, end: number, isCopied: boolean): void {
    const count = this.#counts[depth] ?? 0
    const slot = depth * COMPARED_NAMES + count
    this.#starts[slot] = start
    this.#ends[slot] = end
    this.#copied[slot] = isCopied
    this.#counts[depth] = count + 1
  }

  #toSet(depth: number, count: number): Set<string> {
    const set = new Set<string>()
    const base = depth * COMPARED_NAMES
    for (let slot = base; slot < base + count; slot++) {
      const source = this.#copied[slot] ? copies : this.#bytes
      set.add(bufferOf(source).toString('latin1', this.#starts[slot] ?? 0, this.#ends[slot] ?? 0))
    }
    this.#sets ??= []
    this.#sets[depth] = set
    return set
  }

  #seenIn(set: Set<string>, start: number, end: number): boolean {
    const before = set.size
    return set.add(keyOf(this.#bytes, start, end)).size === before
  }
}

/** Does the name in bytes `start` to `end` contain an escape? */
function isEscaped(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === BACKSLASH) return true
  return false
}

/** Key shared by equal names only: the bytes of the unescaped name, one a character, which costs no decoding. */
function keyOf(bytes: Uint8Array, start: number, end: number): string {
  if (!isEscaped(bytes, start, end)) return bufferOf(bytes).toString('latin1', start, end)
  const short = unescapeInto(unescaped, bytes, start, end)
  if (short !== TOO_LONG) return unescaped.toString('latin1', 0, short)
  const long = Buffer.allocUnsafe(end - start + SPARE_BYTES)
  return long.toString('latin1', 0, unescapeInto(long, bytes, start, end))
}

/** The name in bytes `start` to `end` (without quotes), unescaped. */
export function nameOf(bytes: Uint8Array, start: number, end: number): string {
  const raw = textOf(bytes, start, end)
  if (!raw.includes('\\')) return raw
  const name: unknown = JSON.parse(`"${raw}"`)
  return typeof name === 'string' ? name : raw
}

export function textOf(bytes: Uint8Array, start: number, end: number): string {
  return bufferOf(bytes).toString('utf8', start, end)
}

/** The same bytes with the methods of a `Buffer`; most are one already. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
