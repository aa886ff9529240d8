import { EscapeDecoder } from './json/escapes.ts'
import { marker, redacted } from './json/strings.ts'
import { type Hit, LOOK_BACK_CHARS, type OpenHit } from './scan/scan-state.ts'
import type { Piece, Scanner } from './scan/scanner.ts'

/** Hits that overlap one another without end are held back so far, in characters. */
const MAX_HELD_CHARS = 16_384

/** What a piece of a text lets go. */
export interface Released {
  readonly text: string
  readonly hits: readonly Hit[]
}

/**
 * Of a hit that is certain and goes on so many characters at its end are kept: there its own end is told. It is more than the longest run
 * that can look random, so that a longer one does not look shorter.
 */
const KEPT_TAIL_CHARS = 640

export interface TextStreamParts {
  readonly scanner: Scanner
  /** Most characters that are held back for what is not certain. */
  readonly carry: number
  /** Whether a hit is replaced; others are only told. */
  readonly isRedacted: (hit: Pick<Hit, 'detector'>) => boolean
  /** The text is JSON: outside of its strings a mark needs quotes. */
  readonly isJson: boolean
}

/**
 * A text that comes in pieces. What may still become a hit is held back until it is told, and nothing else is: for any pieces, what is
 * let go in all is what the whole text would be. At most `carry` characters are held back for what is not certain; negative: none,
 * and each piece is scanned alone.
 */
export class TextStream {
  readonly #scanner: Scanner
  readonly #carry: number
  readonly #isRedacted: (hit: Pick<Hit, 'detector'>) => boolean
  #before = ''
  #held = ''
  /** Characters since the last boundary of a hit; undefined: there was none. */
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

  push(piece: string): Released {
    this.#held += this.#escapes === null ? piece : this.#escapes.push(piece)
    if (this.#carry < 0) return this.end()
    const { hits, decidedTo, openHits } = this.#scanner.begun(this.#piece, this.#carry)
    const crossing = hits.find((hit) => hit.start < decidedTo && hit.end > decidedTo)
    const limit = crossing?.start ?? decidedTo
    // What is a hit already is held for what overlaps it, and is not among what is uncertain.
    const isLittle = this.#held.length - decidedTo <= this.#carry && this.#held.length - limit <= MAX_HELD_CHARS
    if (isLittle) return this.#release(hits, limit)
    return this.#force(openHits)
  }

  /** Whatever is held back, since nothing follows. */
  end(): Released {
    if (this.#escapes !== null) this.#held += this.#escapes.end()
    return this.#release(this.#scanner.ended(this.#piece), this.#held.length)
  }

  get #piece(): Piece {
    return { before: this.#before, text: this.#held, sinceHit: this.#sinceHit }
  }

  /**
   * More is undecided than may be held back. Everything but the last `carry` characters is judged as if nothing followed, up to the first
   * hit that is still open and will be replaced: from there on the text stays, without its middle.
   */
  #force(openHits: readonly OpenHit[]): Released {
    const hits = this.#scanner.ended(this.#piece)
    const from = this.#held.length - this.#carry
    const limit = endOfCrossing(hits, from) ?? from
    const open = openHits.find((hit) => hit.start < limit && this.#isRedacted(hit))
    if (open === undefined) return this.#release(hits, limit)
    const start = hits.find((hit) => hit.start <= open.start && hit.end > open.start)?.start ?? open.start
    const released = this.#release(hits, start)
    this.#shorten(open.certainAt - start)
    return released
  }

  #release(hits: readonly Hit[], limit: number): Released {
    const gone = hits.filter((hit) => hit.end <= limit)
    const original = this.#held.slice(0, limit)
    const replaced = gone.filter(this.#isRedacted)
    const text = replaced.length === 0 ? original : redacted(original, replaced, this.#marks(original))
    this.#quotes?.take(original)
    this.#before = (this.#before + original).slice(-LOOK_BACK_CHARS)
    const boundary = gone.findLast((hit) => hit.boundary !== undefined)?.boundary
    if (boundary !== undefined) this.#sinceHit = limit - boundary
    else if (this.#sinceHit !== undefined) this.#sinceHit += limit
    this.#held = this.#held.slice(limit)
    return { text, hits: gone }
  }

  /** Of what is certain to be replaced the middle is forgotten: it may be long. */
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

/** Whether a JSON text that comes in pieces is within a string. */
class Quotes {
  #isOpen = false
  #isEscaped = false

  take(text: string): void {
    for (const char of text) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (char === '\\') this.#isEscaped = this.#isOpen
      else if (char === '"') this.#isOpen = !this.#isOpen
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
