import { runAtOnce, type Steps } from '@plat/core'
import { EscapeDecoder } from './json/escapes.ts'
import { marker, redacting } from './json/strings.ts'
import { type Hit, LOOK_BACK_CHARS, type OpenHit } from './scan/scan-state.ts'
import type { Piece, Scanner } from './scan/scanner.ts'

/** Maximum length of held overlapping hits, in characters. */
const MAX_HELD_CHARS = 16_384

/** Released text of a piece. */
export interface Released {
  readonly text: string
  readonly hits: readonly Hit[]
}

/**
 * Characters kept at the end of a certain, continuing hit, to find its end. More than the longest run
 * that can look random, so that a longer one does not look shorter.
 */
const KEPT_TAIL_CHARS = 640

export interface TextStreamParts {
  readonly scanner: Scanner
  /** Maximum held characters that are undecided. */
  readonly carry: number
  /** Returns whether a hit is replaced; others are only reported. */
  readonly isRedacted: (hit: Pick<Hit, 'detector'>) => boolean
  /** The text is JSON: outside of its strings replacements need quotes. */
  readonly isJson: boolean
}

/**
 * A text in pieces. Only possible hits are held back until decided: for any pieces, the total
 * released text is that of the whole text. At most `carry` undecided characters are held back; if negative, none,
 * and each piece is scanned alone.
 */
export class TextStream {
  readonly #scanner: Scanner
  readonly #carry: number
  readonly #isRedacted: (hit: Pick<Hit, 'detector'>) => boolean
  #before = ''
  #held = ''
  /** Characters since the last hit boundary, or undefined. */
  #sinceHit: number | undefined
  readonly #quotes: Quotes | null
  readonly #escapes: EscapeDecoder | null

  constructor({ scanner, carry, isRedacted, isJson }: TextStreamParts) {
    this.#scanner = scanner
    this.#carry = carry
    this.#isRedacted = isRedacted
    this.#quotes = isJson ? new Quotes() : null
    this.#escapes = isJson ? new EscapeDecoder() : null
  }

  *push(piece: string): Steps<Released> {
    const text = this.#escapes === null ? piece : yield* this.#escapes.push(piece)
    this.#held += text
    yield
    if (this.#carry < 0) return yield* this.#endPiece()
    const { hits, decidedTo, openHits } = yield* this.#scanner.begun(this.#piece, this.#carry)
    const crossing = hits.find((hit) => hit.start < decidedTo && hit.end > decidedTo)
    const limit = crossing?.start ?? decidedTo
    // Certain hits are held for overlaps and are not undecided.
    const isLittle = this.#held.length - decidedTo <= this.#carry && this.#held.length - limit <= MAX_HELD_CHARS
    if (isLittle) return yield* this.#release(hits, limit)
    return yield* this.#force(openHits)
  }

  /** Releases the held text, since no more follows. */
  end(): Released {
    return runAtOnce(this.#endPiece())
  }

  *#endPiece(): Steps<Released> {
    if (this.#escapes !== null) this.#held += this.#escapes.end()
    return yield* this.#release(yield* this.#scanner.ended(this.#piece), this.#held.length)
  }

  get #piece(): Piece {
    return { before: this.#before, text: this.#held, sinceHit: this.#sinceHit }
  }

  /**
   * Too much is undecided. Decides everything but the last `carry` characters as if no text followed, up to the first
   * open hit that will be replaced: from there on the text stays, without its middle.
   */
  *#force(openHits: readonly OpenHit[]): Steps<Released> {
    const hits = yield* this.#scanner.ended(this.#piece)
    const from = this.#held.length - this.#carry
    const limit = endOfCrossing(hits, from) ?? from
    const open = openHits.find((hit) => hit.start < limit && this.#isRedacted(hit))
    if (open === undefined) return yield* this.#release(hits, limit)
    const start = hits.find((hit) => hit.start <= open.start && hit.end > open.start)?.start ?? open.start
    const released = yield* this.#release(hits, start)
    this.#shorten(open.certainAt - start)
    return released
  }

  *#release(hits: readonly Hit[], limit: number): Steps<Released> {
    yield
    const gone = hits.filter((hit) => hit.end <= limit)
    const original = this.#held.slice(0, limit)
    const replaced = gone.filter(this.#isRedacted)
    const text = replaced.length === 0 ? original : yield* redacting(original, replaced, this.#marks(original))
    yield
    this.#quotes?.take(original)
    this.#before = (this.#before + original).slice(-LOOK_BACK_CHARS)
    const boundary = gone.findLast((hit) => hit.boundary !== undefined)?.boundary
    if (boundary !== undefined) this.#sinceHit = limit - boundary
    else if (this.#sinceHit !== undefined) this.#sinceHit += limit
    this.#held = this.#held.slice(limit)
    return { text, hits: gone }
  }

  /** Drops the middle of a certain hit that will be replaced: it may be long. */
  #shorten(sureAt: number): void {
    const least = sureAt + KEPT_TAIL_CHARS
    if (this.#held.length > least) this.#held = this.#held.slice(0, sureAt) + this.#held.slice(-KEPT_TAIL_CHARS)
  }

  #marks(original: string): (hit: Hit) => string {
    const within = this.#quotes?.copy()
    if (within === undefined) return marker
    let at = 0
    return (hit) => {
      within.take(original.slice(at, hit.start))
      at = hit.start
      return within.areOpen ? marker(hit) : `"${marker(hit)}"`
    }
  }
}

function endOfCrossing(hits: readonly Hit[], at: number): number | undefined {
  return hits.find((hit) => hit.start < at && hit.end > at)?.end
}

const BACKSLASH = 0x5c
const QUOTE = 0x22

/** Tracks whether a JSON text in pieces is within a string. */
class Quotes {
  #isOpen = false
  #isEscaped = false

  take(text: string): void {
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.#isEscaped) this.#isEscaped = false
      else if (code === BACKSLASH) this.#isEscaped = this.#isOpen
      else if (code === QUOTE) this.#isOpen = !this.#isOpen
    }
  }

  get areOpen(): boolean {
    return this.#isOpen
  }

  copy(): Quotes {
    const same = new Quotes()
    same.#isOpen = this.#isOpen
    same.#isEscaped = this.#isEscaped
    return same
  }
}
