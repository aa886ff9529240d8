import type { Detector } from '../detectors/detector.ts'

/** Something that a detector found: from `start` to before `end` of the text. */
export interface Hit {
  readonly detector: Detector
  readonly start: number
  readonly end: number
  /**
   * A word may begin at this place although a word character stands before it: the furthest end that the first pass found within the hit.
   * Absent where only sweeps and custom detectors found it: they run after the first pass, which therefore cannot depend on them.
   */
  readonly boundary?: number | undefined
}

/** A hit whose end has not arrived yet: whatever follows, it will be one. */
export interface OpenHit {
  readonly detector: Detector
  readonly start: number
  /** The characters before this offset made it certain. */
  readonly certainAt: number
}

/** Characters of which a decision may look back: local parts of addresses, and words near a number. */
export const LOOK_BACK_CHARS = 80

/** Nothing is open. */
export const NOWHERE = Number.POSITIVE_INFINITY

/** A set of ASCII characters. */
export interface CharClass {
  /** By character: 1 where it belongs to the set. */
  readonly members: Uint8Array
  /** Its number among all classes. */
  readonly place: number
}

let classes = 0

/** `A-Za-z0-9_.` as a class; a hyphen that is meant stands at the end. */
export function classOf(spelled: string): CharClass {
  const members = new Uint8Array(128)
  for (let at = 0; at < spelled.length; at++) {
    const from = spelled.charCodeAt(at)
    const isRange = spelled[at + 1] === '-' && at + 2 < spelled.length
    const to = isRange ? spelled.charCodeAt(at + 2) : from
    for (let code = from; code <= to; code++) members[code] = 1
    if (isRange) at += 2
  }
  return { members, place: classes++ }
}

export function isIn({ members }: CharClass, code: number): boolean {
  return members[code] === 1
}

const WORD = classOf('A-Za-z0-9_')
/** Letters that follow a backslash in the text of a JSON string: after `\n` a word begins. */
const ESCAPED = classOf('bfnrt')
const ESCAPES = /\\[bfnrt]/g
const BACKSLASH = 0x5c

/** Where to look for what stands before a text: names of JSON members are context of their values. */
export interface Context {
  readonly text: string
  /** The context ends before this. */
  readonly end: number
}

/** How a text is looked at. */
export interface ScanOptions {
  /** Only what begins here or later is told; what stands before is there to look back. Default: the start. */
  readonly floor?: number
  /** More text may follow. */
  readonly isOpen?: boolean
  /** How many characters before the floor the last boundary of a hit was; absent: there was none. */
  readonly sinceHit?: number | undefined
  /** What stands before the text, such as the name of a JSON member. */
  readonly context?: Context | null
  /** It is known that no expression of a profile's own matches here. */
  readonly isOwnAbsent?: boolean
}

/**
 * One look at one text, of which only what stands between `start` and `end` counts. What a detector decides at a place depends on
 * nothing further back than `LOOK_BACK_CHARS`, and on nothing behind the end of what it found but the next two characters: so a text
 * that comes in pieces is judged as the whole would be.
 */
export class ScanState {
  text = ''
  start = 0
  end = 0
  isOpen = false
  readonly hits: Hit[] = []
  /** From here on nothing is decided. */
  openAt = NOWHERE
  /** The first pass is over: hits add no boundaries. */
  isSweeping = false
  /** Hits that are certain although the text ends within them. */
  readonly openHits: OpenHit[] = []
  /** Characters that were looked at beyond the first pass: the measure of work. */
  looked = 0
  #floor = 0
  #context: Context | null = null
  /** The furthest end of a hit of the first pass. */
  #boundary = -1
  /** The last run of each class. */
  readonly #runs: ({ readonly start: number; readonly end: number } | undefined)[] = []
  /** By the place of a detector: how far its last endless hit went. */
  readonly #covered: number[] = []

  begin(text: string, start: number, end: number, manner: ScanOptions): void {
    this.text = text
    this.start = start
    this.end = end
    this.isOpen = manner.isOpen === true
    this.hits.length = 0
    this.openAt = NOWHERE
    this.openHits.length = 0
    this.#floor = manner.floor ?? start
    this.#context = manner.context ?? null
    this.#boundary = manner.sinceHit === undefined ? -1 : this.#floor - manner.sinceHit
    this.isSweeping = false
    this.#runs.length = 0
    this.#covered.length = 0
  }

  /** Lets go of the text, which may be long, and hold what nobody should keep. What was found out of it stays. */
  forget(): void {
    this.text = ''
    this.#context = null
    this.hits.length = 0
  }

  code(at: number): number {
    return at >= this.start && at < this.end ? this.text.charCodeAt(at) : -1
  }

  /** Whether a word can begin here: what stands before it is no part of one, or was found itself. */
  begins(at: number): boolean {
    return this.isHitEnd(at) || !this.#isWordBefore(at)
  }

  #isWordBefore(at: number): boolean {
    const before = this.code(at - 1)
    if (!isIn(WORD, before)) return false
    return !(isIn(ESCAPED, before) && this.code(at - 2) === BACKSLASH)
  }

  isHitEnd(at: number): boolean {
    return at === this.#boundary
  }

  /** Whether a word ends before this place. */
  ends(at: number): boolean {
    return !isIn(WORD, this.code(at))
  }

  /** Where a run of the class ends that goes on here, at most at `limit`. Each run is gone through once, whoever asks. */
  run(of: CharClass, at: number, limit = this.end): number {
    const known = this.#runs[of.place]
    if (known !== undefined && at >= known.start && at <= known.end) return Math.min(known.end, limit)
    const { text, end } = this
    const { members } = of
    let next = at
    while (next < end && members[text.charCodeAt(next)] === 1) next++
    this.looked += next - at
    this.#runs[of.place] = { start: at, end: next }
    return Math.min(next, limit)
  }

  /** Where the run of the class begins that ends before this place, at most `most` characters long. */
  runBack(of: CharClass, at: number, most: number): number {
    const first = Math.max(this.start, at - most)
    let next = at
    while (next > first && isIn(of, this.text.charCodeAt(next - 1))) next--
    this.looked += at - next
    return next
  }

  /** Whether the place lies in a run that this detector has judged. */
  isCovered(detector: Detector, at: number): boolean {
    return at < (this.#covered[detector.place] ?? 0)
  }

  cover(detector: Detector, end: number): void {
    this.#covered[detector.place] = end
  }

  slice(from: number, to: number): string {
    return this.text.slice(from, to)
  }

  /** What stands before a place, `LOOK_BACK_CHARS` at most; line ends of a JSON text in a text are spaces. */
  before(at: number): string {
    const before = this.#before(at)
    return before.includes('\\') ? before.replace(ESCAPES, ' ') : before
  }

  #before(at: number): string {
    const own = this.text.slice(Math.max(this.start, at - LOOK_BACK_CHARS), at)
    const missing = LOOK_BACK_CHARS - own.length
    const context = this.#context
    if (missing === 0 || context === null) return own
    return context.text.slice(Math.max(0, context.end - missing), context.end) + own
  }

  hit(detector: Detector, start: number, end: number): void {
    if (start < this.#floor) return
    if (this.isSweeping) {
      this.hits.push({ detector, start, end })
      return
    }
    this.hits.push({ detector, start, end, boundary: end })
    this.#boundary = Math.max(this.#boundary, end)
  }

  /** The text ends before it is told what begins here. */
  ifOpen(at: number): void {
    if (this.isOpen) this.open(at)
  }

  /** The text from `at` on may become a hit with what follows. */
  open(at: number): void {
    if (at < this.openAt && at >= this.#floor) this.openAt = at
  }

  /** The text from `at` on becomes a hit whatever follows: the characters before `certainAt` decide it. */
  openHit(detector: Detector, start: number, certainAt: number): void {
    if (start >= this.#floor) this.openHits.push({ detector, start, certainAt })
    this.open(start)
  }
}
