/** Identity of the detector that found a hit. */
export interface HitSource {
  readonly id: string
  /** Credentials and keys are secrets; all others are personal data. */
  readonly secret: boolean
  /** Rank in a profile: of two hits on the same text the first counts. */
  readonly place: number
}

/** A hit from `start` to before `end` of the text. */
export interface Hit {
  readonly detector: HitSource
  readonly start: number
  readonly end: number
  /**
   * A word may begin at this place although it follows a word character: the furthest end that the first pass found within the hit.
   * Absent where only sweeps and custom detectors found it: they run after the first pass, which therefore cannot depend on them.
   */
  readonly boundary?: number | undefined
}

/** A certain hit whose end is not known yet. */
export interface OpenHit {
  readonly detector: HitSource
  readonly start: number
  /** Offset after the characters that decided it. */
  readonly certainAt: number
}

/** Maximum lookbehind of decisions, in characters: local parts of addresses, and words near a number. */
export const LOOK_BACK_CHARS = 80

/** No open position. */
export const NOWHERE = Number.POSITIVE_INFINITY

/** A set of ASCII characters. */
export interface CharClass {
  /** 1 for each character in the set. */
  readonly members: Uint8Array
  /** Index among all classes. */
  readonly place: number
}

let classes = 0

/** Parses a class such as `A-Za-z0-9_.`; a literal hyphen must be last. */
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
/** Letters after a backslash in a JSON string: a word begins after `
`. */
const ESCAPED = classOf('bfnrt')
const ESCAPES = /\\[bfnrt]/g
const BACKSLASH = 0x5c

/** Text before the scanned text: member names are context of their values. */
export interface Context {
  readonly text: string
  readonly end: number
}

export interface ScanOptions {
  /** Minimum start of hits; earlier text is lookbehind only. Default: the start. */
  readonly floor?: number
  /** Whether more text may follow. */
  readonly isOpen?: boolean
  /** Characters between the last hit boundary and the floor; absent if there was none. */
  readonly sinceHit?: number | undefined
  /** Text before the scanned one, such as a member name. */
  readonly context?: Context | null
  /** It is known that no expression of a profile's own matches here. */
  readonly isOwnAbsent?: boolean
}

/**
 * State of one scan, of which only the text between `start` and `end` counts. Decisions at a position depend on at most
 * `LOOK_BACK_CHARS` before it, and on two characters after the hit: so a text
 * in pieces has the same hits as the whole.
 */
export class ScanState {
  text = ''
  start = 0
  end = 0
  isOpen = false
  readonly hits: Hit[] = []
  /** Positions from here on are undecided. */
  openAt = NOWHERE
  /** Where the first pass is in its automaton, and whether the last character was a digit. */
  state = 0
  inDigits = false
  /** After the first pass hits add no boundaries. */
  isSweeping = false
  /** Certain hits that extend beyond the end of the text. */
  readonly openHits: OpenHit[] = []
  /** Characters read beyond the first pass, as a measure of work. */
  looked = 0
  #floor = 0
  #context: Context | null = null
  /** Maximum end of hits in the first pass. */
  #boundary = -1
  /** Last run of each class. */
  readonly #runs: ({ readonly start: number; readonly end: number } | undefined)[] = []
  /** End of the last unlimited hit, by rank of the detector. */
  readonly #covered: number[] = []

  begin(text: string, start: number, end: number, manner: ScanOptions): void {
    this.text = text
    this.start = start
    this.end = end
    this.isOpen = manner.isOpen === true
    this.hits.length = 0
    this.state = 0
    this.inDigits = false
    this.openAt = NOWHERE
    this.openHits.length = 0
    this.#floor = manner.floor ?? start
    this.#context = manner.context ?? null
    this.#boundary = manner.sinceHit === undefined ? -1 : this.#floor - manner.sinceHit
    this.isSweeping = false
    this.#runs.length = 0
    this.#covered.length = 0
  }

  /** Releases the text, which may be long and sensitive. Results stay. */
  forget(): void {
    this.text = ''
    this.#context = null
    this.hits.length = 0
  }

  code(at: number): number {
    return at >= this.start && at < this.end ? this.text.charCodeAt(at) : -1
  }

  /** Returns whether a word can begin here: after a non-word character or a hit. */
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

  /** Returns whether a word ends before this position. */
  ends(at: number): boolean {
    return !isIn(WORD, this.code(at))
  }

  /** End of a run of the class from here, at most `limit`. Each run is scanned only once. */
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

  /** Start of the run of the class that ends here, at most `most` characters long. */
  runBack(of: CharClass, at: number, most: number): number {
    const first = Math.max(this.start, at - most)
    let next = at
    while (next > first && isIn(of, this.text.charCodeAt(next - 1))) next--
    this.looked += at - next
    return next
  }

  /** Returns whether the position is in a run already checked by this detector. */
  isCovered(detector: HitSource, at: number): boolean {
    return at < (this.#covered[detector.place] ?? 0)
  }

  cover(detector: HitSource, end: number): void {
    this.#covered[detector.place] = end
  }

  slice(from: number, to: number): string {
    return this.text.slice(from, to)
  }

  /** Text before a position, at most `LOOK_BACK_CHARS`; escaped line feeds become spaces. */
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

  hit(detector: HitSource, start: number, end: number): void {
    if (start < this.#floor) return
    if (this.isSweeping) {
      this.hits.push({ detector, start, end })
      return
    }
    this.hits.push({ detector, start, end, boundary: end })
    this.#boundary = Math.max(this.#boundary, end)
  }

  /** Called when the text ends before a decision at this position. */
  ifOpen(at: number): void {
    if (this.isOpen) this.open(at)
  }

  /** Marks the text from `at` on as a possible hit. */
  open(at: number): void {
    if (at < this.openAt && at >= this.#floor) this.openAt = at
  }

  /** Marks the text from `at` on as a certain hit, decided by the characters before `certainAt`. */
  openHit(detector: HitSource, start: number, certainAt: number): void {
    if (start >= this.#floor) this.openHits.push({ detector, start, certainAt })
    this.open(start)
  }
}
