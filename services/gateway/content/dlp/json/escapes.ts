import type { Steps } from '@plat/core'

const BACKSLASH = '\\'
/** Lengths of `\uXXXX` and of other escapes. */
const LONG_CHARS = 6
const SHORT_CHARS = 2

/** Escapes that are decoded in one step. */
const ESCAPES_OF_STEP = 4096

/** Control characters with a short escape, which detectors treat as the end of a word. */
const SHORT: ReadonlyMap<number, string> = new Map([
  [0x08, '\\b'],
  [0x09, '\\t'],
  [0x0a, '\\n'],
  [0x0c, '\\f'],
  [0x0d, '\\r'],
])
const SPACE = 0x20
const QUOTE = 0x22
const REVERSE_SOLIDUS = 0x5c
const DELETE = 0x7f

/**
 * Replaces escapes that need not be by their characters in a JSON text that comes in pieces, so that `\u0034` is scanned as `4`. The text
 * stays the same JSON: escapes of quotes, backslashes, control characters and halves of surrogate pairs are kept.
 */
export class EscapeDecoder {
  /** An incomplete escape. */
  #rest = ''

  /** Returns an incomplete escape unchanged. */
  end(): string {
    const rest = this.#rest
    this.#rest = ''
    return rest
  }

  /** Returns the text that a piece completes. A step after some escapes: one takes many times as long as another character. */
  *push(piece: string): Steps<string> {
    const text = this.#rest + piece
    this.#rest = ''
    let out = ''
    let at = 0
    for (let count = 1; ; count++) {
      if (count % ESCAPES_OF_STEP === 0) yield
      const start = text.indexOf(BACKSLASH, at)
      if (start === -1) return out + text.slice(at)
      out += text.slice(at, start)
      const end = start + (text[start + 1] === 'u' ? LONG_CHARS : SHORT_CHARS)
      if (end > text.length) {
        this.#rest = text.slice(start)
        return out
      }
      out += plain(text.slice(start, end))
      at = end
    }
  }
}

function plain(sequence: string): string {
  if (sequence === '\\/') return '/'
  if (!/^\\u[0-9a-fA-F]{4}$/.test(sequence)) return sequence
  const code = Number.parseInt(sequence.slice(SHORT_CHARS), 16)
  const short = SHORT.get(code)
  if (short !== undefined) return short
  const isKept = code < SPACE || code === QUOTE || code === REVERSE_SOLIDUS || code === DELETE
  const character = String.fromCharCode(code)
  return isKept || !character.isWellFormed() ? sequence : character
}
