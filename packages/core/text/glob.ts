import { ENGINE_CHARS, searchFor, type TextSearch } from './search.ts'

/**
 * Returns a case-sensitive matcher for the whole text, in which `*` matches any run of characters, also none. Nothing else is special. Each piece
 * between stars is searched once from left to right, so no pattern backtracks: the time is proportional to the text.
 */
export function glob(pattern: string): (text: string) => boolean {
  const pieces = pattern.split('*')
  const first = pieces[0] ?? ''
  if (pieces.length === 1) return (text) => text === pattern
  const last = pieces.at(-1) ?? ''
  const middle = pieces
    .slice(1, -1)
    .filter((piece) => piece !== '')
    .map((piece) => (piece.length <= ENGINE_CHARS ? piece : { length: piece.length, search: searchFor(piece) }))
  const fixed = first.length + last.length
  return (text) =>
    text.length >= fixed &&
    text.startsWith(first) &&
    text.endsWith(last) &&
    holds(text, first.length, last.length, middle)
}

/** A short text itself: a pattern of stars may have hundreds of thousands of them. */
type Piece = string | { readonly length: number; readonly search: TextSearch }

/** Returns whether the pieces follow one another between the fixed ends of the text. */
function holds(text: string, start: number, tail: number, pieces: readonly Piece[]): boolean {
  const end = text.length - tail
  let at = start
  for (const piece of pieces) {
    const found = typeof piece === 'string' ? text.indexOf(piece, at) : piece.search(text, at)
    if (found < 0 || found + piece.length > end) return false
    at = found + piece.length
  }
  return true
}
