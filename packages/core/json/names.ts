/** Objects with more members than this, or with an escaped name, remember their names as strings in a set. */
const COMPARED_NAMES = 16
const BACKSLASH = 0x5c
const NOTHING = new Uint8Array(0)

/**
 * The member names of every object that is open while JSON is scanned. Most objects are small and their names carry no
 * escapes: those are compared byte by byte where they stand, without making strings. All others use a set, so that an
 * object of a million members stays linear.
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
  /** Start and end of each listed name; `COMPARED_NAMES` slots a depth. */
  readonly #starts: number[] = []
  readonly #ends: number[] = []

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

  /** Notes the name in bytes `start` to `end` (without quotes); true when the object had it already. */
  seen(depth: number, start: number, end: number): boolean {
    this.#left--
    const count = this.#counts[depth] ?? 0
    const set = this.#sets?.[depth]
    if (set) return this.#seenIn(set, start, end)
    if (count === COMPARED_NAMES || (this.#escapes && isEscaped(this.#bytes, start, end))) {
      return this.#seenIn(this.#toSet(depth, count), start, end)
    }
    const base = depth * COMPARED_NAMES
    for (let slot = base; slot < base + count; slot++) {
      if (this.#same(this.#starts[slot] ?? 0, this.#ends[slot] ?? 0, start, end)) return true
    }
    this.#starts[base + count] = start
    this.#ends[base + count] = end
    this.#counts[depth] = count + 1
    return false
  }

  #toSet(depth: number, count: number): Set<string> {
    const set = new Set<string>()
    const base = depth * COMPARED_NAMES
    for (let slot = base; slot < base + count; slot++) {
      set.add(keyOf(this.#bytes, this.#starts[slot] ?? 0, this.#ends[slot] ?? 0))
    }
    this.#sets ??= []
    this.#sets[depth] = set
    return set
  }

  #seenIn(set: Set<string>, start: number, end: number): boolean {
    const before = set.size
    return set.add(keyOf(this.#bytes, start, end)).size === before
  }

  #same(start: number, end: number, otherStart: number, otherEnd: number): boolean {
    const length = end - start
    if (length !== otherEnd - otherStart) return false
    const bytes = this.#bytes
    for (let index = 0; index < length; index++) if (bytes[start + index] !== bytes[otherStart + index]) return false
    return true
  }
}

/** Does the name in bytes `start` to `end` contain an escape? */
function isEscaped(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === BACKSLASH) return true
  return false
}

const ASCII = /^[\x20-\x7e]*$/

/**
 * Key shared by equal names only: the UTF-8 of the unescaped name, one byte per character, which costs no decoding. A lone surrogate has no UTF-8:
 * such a name is its own key, and contains a character that is not a byte.
 */
function keyOf(bytes: Uint8Array, start: number, end: number): string {
  const raw = bufferOf(bytes).toString('latin1', start, end)
  if (!raw.includes('\\')) return raw
  const name = nameOf(bytes, start, end)
  if (ASCII.test(name)) return name
  return name.isWellFormed() ? Buffer.from(name).toString('latin1') : name
}

/** The name in bytes `start` to `end` (without quotes), unescaped. */
export function nameOf(bytes: Uint8Array, start: number, end: number): string {
  const raw = textOf(bytes, start, end)
  if (!raw.includes('\\')) return raw
  const name: unknown = JSON.parse(`"${raw}"`)
  return typeof name === 'string' ? name : raw
}

/** The text of a byte range of valid UTF-8. */
export function textOf(bytes: Uint8Array, start: number, end: number): string {
  return bufferOf(bytes).toString('utf8', start, end)
}

/** The same bytes with the methods of a `Buffer`; most are one already. */
export function bufferOf(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
