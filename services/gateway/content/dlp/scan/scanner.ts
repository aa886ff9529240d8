import { runAtOnce, type Steps } from '@plat/core'
import type { Detector } from '../detectors/detector.ts'
import { continues } from '../detectors/shape.ts'
import { Automaton } from './automaton.ts'
import type { Custom } from './custom.ts'
import { classOf, type Hit, isIn, LOOK_BACK_CHARS, type OpenHit, type ScanOptions, ScanState } from './scan-state.ts'

/** No shape begins with more digits in a row, or with more letters. */
const MOST_DIGITS = 20
const MOST_LETTERS = 6

/** No built-in detector finds anything in fewer characters; an address of a private network has eight. */
export const SHORTEST_CHARS = 7

const UPPER = classOf('A-Z')
const DIGITS = classOf('0-9')
const WORD = classOf('A-Za-z0-9_')
const WIDTH_BITS = 7
/** Longer texts are read in steps of so many characters. */
const STEP_CHARS = 32 * 1024
const LAST_ASCII = 0x7f
const ZERO = 0x30
const NINE = 0x39

/** The hits so far in a text that continues. Positions count from its beginning. */
export interface Begun {
  readonly hits: readonly Hit[]
  /** Matches that begin here or later are undecided; the length of the text if none is. */
  readonly decidedTo: number
  /** Hits that begin at `decidedTo` or later and are certain whatever follows. */
  readonly openHits: readonly OpenHit[]
}

/** Hits of the built-in detectors, with the state of the scan at the end. */
interface BuiltInHits extends Pick<ScanState, 'openAt' | 'openHits'> {
  readonly hits: readonly Hit[]
}

/** Where in a text that comes in pieces a scanner is. */
export interface Piece {
  /** The preceding text, of which the last `LOOK_BACK_CHARS` count. */
  readonly before: string
  readonly text: string
  /** How many characters before the text the last boundary of a hit was; undefined: there was none. */
  readonly sinceHit: number | undefined
}

/** Finds everything that a profile looks for in one pass over a text. Keeps nothing of a text; not to be used by two at a time. */
export class Scanner {
  readonly #look = new ScanState()
  readonly #automaton: Automaton<Detector>
  readonly #byDigits: readonly (readonly Detector[])[]
  readonly #byLetters: readonly (readonly Detector[])[]
  readonly #sweeping: readonly Detector[]
  readonly #tailing: readonly Detector[]
  readonly #customs: readonly Custom[]
  readonly #hasLetters: boolean
  /** Beginnings of the anchors that count within words. */
  readonly #inWords: ReadonlySet<string>

  constructor(detectors: readonly Detector[], customs: readonly Custom[] = []) {
    this.#automaton = new Automaton(
      detectors.flatMap((detector) => (detector.finder.anchors ?? []).map((anchor) => [anchor, detector] as const)),
    )
    const where = (holds: (detector: Detector) => boolean) => detectors.filter(holds)
    const upTo = (most: number, of: (detector: Detector) => readonly number[] | undefined) =>
      Array.from({ length: most + 1 }, (_, count) => where((detector) => of(detector)?.includes(count) === true))
    this.#byDigits = upTo(MOST_DIGITS, ({ finder }) => finder.digits)
    this.#byLetters = upTo(MOST_LETTERS, ({ finder }) => finder.letters)
    this.#hasLetters = this.#byLetters.some((list) => list.length > 0)
    this.#sweeping = where(({ finder }) => finder.sweep !== undefined)
    this.#tailing = where(({ finder }) => finder.tail !== undefined)
    this.#customs = customs
    this.#inWords = new Set(
      where(({ finder }) => finder.isInWords === true).flatMap(({ finder }) =>
        (finder.anchors ?? []).flatMap(beginnings),
      ),
    )
  }

  /** Whether texts must be decoded before they are scanned: expressions of people may speak of any character. */
  get needsText(): boolean {
    return this.#customs.length > 0
  }

  /** Shorter texts contain no match of a custom expression. */
  get shortestOwn(): number {
    return Math.min(...this.#customs.map(({ shortest }) => shortest))
  }

  /** Whether it is certain that no expression of a profile's own matches a part of the text, in steps. */
  *ownAbsentFrom(text: string): Steps<boolean> {
    for (const custom of this.#customs) if (!(yield* custom.absentFrom(text))) return false
    return true
  }

  /** Characters that were looked at beyond the first pass, since the scanner was made. */
  get looked(): number {
    return this.#look.looked
  }

  /** The hits between `start` and `end`, in order, none within another. */
  scan(text: string, start = 0, end = text.length, manner: ScanOptions = PLAIN): readonly Hit[] {
    const look = this.#look
    look.begin(text, start, end, manner)
    this.#pass(look)
    if (manner.isOwnAbsent !== true)
      for (const custom of this.#customs) runAtOnce(custom.find(text, manner.floor ?? start, end, look.hits))
    const hits = look.hits.length === 0 ? NO_HITS : inOrder(look.hits)
    look.forget()
    return hits
  }

  /** The same in steps, between which other texts may be scanned: expressions of a profile's own may take long. */
  *scanning(text: string, start: number, end: number, manner: ScanOptions): Steps<readonly Hit[]> {
    const { hits } = yield* this.#scanningBuiltIn(text, start, end, manner)
    return manner.isOwnAbsent === true ? hits : yield* this.#withOwn(hits, { text, start: manner.floor ?? start, end })
  }

  *#scanningBuiltIn(text: string, start: number, end: number, manner: ScanOptions): Steps<BuiltInHits> {
    const isLong = end - start > STEP_CHARS
    // Other texts are scanned between steps.
    const look = isLong ? new ScanState() : this.#look
    look.begin(text, start, end, manner)
    if (isLong) yield* this.#passing(look)
    else this.#pass(look)
    const { openAt, hits } = look
    const found = { hits: hits.length === 0 ? NO_HITS : inOrder(hits), openAt, openHits: [...look.openHits] }
    look.forget()
    return found
  }

  /** Adds hits of a profile's own expressions. */
  *#withOwn(
    found: readonly Hit[],
    { text, start, end }: { readonly text: string; readonly start: number; readonly end: number },
  ): Steps<readonly Hit[]> {
    let all = found
    for (const custom of this.#customs) {
      yield
      const hits: Hit[] = []
      yield* custom.find(text, start, end, hits)
      if (hits.length > 0) all = yield* merged(all, hits)
    }
    return all
  }

  /** The last piece of a text. */
  *ended({ before, text, sinceHit }: Piece): Steps<readonly Hit[]> {
    const past = before.slice(-LOOK_BACK_CHARS)
    const whole = past + text
    const found = yield* this.scanning(whole, 0, whole.length, { floor: past.length, sinceHit })
    return found.map((hit) => moved(hit, past.length))
  }

  /** A text that goes on. `keep`: how many characters at its end stay undecided where a custom detector looks. */
  *begun({ before, text, sinceHit }: Piece, keep: number): Steps<Begun> {
    const past = before.slice(-LOOK_BACK_CHARS)
    const whole = past + text
    const manner = { floor: past.length, sinceHit, isOpen: true }
    const first = yield* this.#scanningBuiltIn(whole, 0, whole.length, manner)
    const { openAt, openHits: open } = first
    const found = yield* this.#withOwn(first.hits, { text: whole, start: past.length, end: whole.length })
    const hits = found.map((hit) => moved(hit, past.length))
    const openHits = open.map(({ detector, start, certainAt }) => ({
      detector,
      start: start - past.length,
      certainAt: certainAt - past.length,
    }))
    const decidedTo = Math.min(openAt - past.length, text.length)
    const boundary = this.#customs.length === 0 ? text.length : Math.max(0, text.length - keep)
    return { hits, decidedTo: Math.min(boundary, decidedTo), openHits }
  }

  #pass(look: ScanState): void {
    this.#read(look, look.start, look.end)
    look.isSweeping = true
    for (const detector of this.#sweeping) detector.finder.sweep?.(look, detector)
    if (look.isOpen) this.#leaveOpen(look)
  }

  /** The same in steps. */
  *#passing(look: ScanState): Steps<void> {
    for (let at = look.start; at < look.end; at += STEP_CHARS) {
      this.#read(look, at, Math.min(look.end, at + STEP_CHARS))
      yield
    }
    look.isSweeping = true
    for (const detector of this.#sweeping) {
      detector.finder.sweep?.(look, detector)
      yield
    }
    if (look.isOpen) this.#leaveOpen(look)
  }

  /** Reads characters once; what an anchor or a number begins is looked at by those whose it is. */
  #read(look: ScanState, from: number, to: number): void {
    const { text } = look
    const { next, marks } = this.#automaton
    let { state, inDigits } = look
    for (let at = from; at < to; at++) {
      const code = text.charCodeAt(at)
      if (code > LAST_ASCII) {
        state = 0
        inDigits = false
        continue
      }
      state = next[(state << WIDTH_BITS) | code] ?? 0
      if (code >= ZERO && code <= NINE) {
        if (!inDigits) this.#number(look, at)
        inDigits = true
      } else inDigits = false
      if (marks[state] === 1) this.#anchors(look, state, at + 1)
    }
    look.state = state
    look.inDigits = inDigits
  }

  #anchors(look: ScanState, state: number, end: number): void {
    for (const { length, owner } of this.#automaton.found(state)) {
      owner.finder.find?.(look, owner, end - length, length)
    }
  }

  /** At the first digit of some. */
  #number(look: ScanState, at: number): void {
    const word = this.#hasLetters ? look.runBack(UPPER, at, MOST_LETTERS + 1) : at
    if (!look.begins(word)) return
    const letters = at - word
    if (letters > 0) {
      find(look, word, this.#byLetters[letters])
      return
    }
    if (continues(look, at)) return
    const end = look.run(DIGITS, at)
    if (end - at > MOST_DIGITS) return
    if (end === look.end && look.isOpen) look.open(at)
    else find(look, at, this.#byDigits[end - at])
  }

  /** The end of the text may be the beginning of an anchor, or the letters of a code. */
  #leaveOpen(look: ScanState): void {
    for (const length of this.#automaton.begun(look.state)) {
      const at = look.end - length
      if (isIn(WORD, look.code(at)) && !look.begins(at) && !this.#inWords.has(look.slice(at, look.end))) continue
      look.open(at)
      break
    }
    if (this.#hasLetters) {
      const word = look.runBack(UPPER, look.end, MOST_LETTERS + 1)
      if (look.end - word <= MOST_LETTERS && word < look.end && look.begins(word)) look.open(word)
    }
    for (const { finder } of this.#tailing) finder.tail?.(look)
  }
}

function beginnings(word: string): readonly string[] {
  return Array.from(word, (_, at) => word.slice(0, at + 1))
}

const NO_HITS: readonly Hit[] = []
const PLAIN: ScanOptions = {}

function find(look: ScanState, at: number, detectors: readonly Detector[] | undefined): void {
  if (detectors === undefined) return
  for (const detector of detectors) detector.finder.find?.(look, detector, at, 0)
}

function moved({ detector, start, end, boundary }: Hit, by: number): Hit {
  return { detector, start: start - by, end: end - by, boundary: boundary === undefined ? undefined : boundary - by }
}

/** Hits that are merged in one step. */
const HITS_OF_STEP = 1024

/** Both lists, each in the order of the text, in that order; hits that overlap become one. */
function* merged(one: readonly Hit[], other: readonly Hit[]): Steps<readonly Hit[]> {
  const out: Hit[] = []
  let [at, next] = [0, 0]
  while (at < one.length || next < other.length) {
    const [left, right] = [one[at], other[next]]
    const isLeft = right === undefined || (left !== undefined && byPlace(left, right) <= 0)
    const hit = isLeft ? left : right
    if (isLeft) at++
    else next++
    if (hit !== undefined) add(out, hit)
    if ((at + next) % HITS_OF_STEP === 0) yield
  }
  return out
}

/** In the order of the text; hits that overlap become one, which is a secret if one of them is. */
function inOrder(hits: readonly Hit[]): readonly Hit[] {
  if (hits.length === 1) return [...hits]
  const out: Hit[] = []
  for (const hit of hits.toSorted(byPlace)) add(out, hit)
  return out
}

function byPlace(one: Hit, other: Hit): number {
  return one.start - other.start || other.end - one.end || one.detector.place - other.detector.place
}

/** Adds the next hit in the order of the text. */
function add(out: Hit[], hit: Hit): void {
  const last = out.at(-1)
  if (last === undefined || hit.start >= last.end) out.push(hit)
  else out[out.length - 1] = joined(last, hit)
}

function joined(one: Hit, other: Hit): Hit {
  const detector = other.detector.secret && !one.detector.secret ? other.detector : one.detector
  const end = Math.max(one.end, other.end)
  const boundary = Math.max(one.boundary ?? -1, other.boundary ?? -1)
  return { detector, start: one.start, end, boundary: boundary === -1 ? undefined : boundary }
}
