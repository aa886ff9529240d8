/**
 * Returns a case-sensitive matcher for the whole text, in which `*` matches any run of characters, also none. Nothing else is special. Each piece
 * between stars is searched once from left to right, so no pattern backtracks.
 */
export function glob(pattern: string): (text: string) => boolean {
  const pieces = pattern.split('*')
  const first = pieces[0] ?? ''
  if (pieces.length === 1) return (text) => text === pattern
  const last = pieces.at(-1) ?? ''
  const middle = pieces.slice(1, -1).filter((piece) => piece !== '')
  const fixed = first.length + last.length
  return (text) =>
    text.length >= fixed &&
    text.startsWith(first) &&
    text.endsWith(last) &&
    holds(text, first.length, last.length, middle)
}

/** Returns whether the pieces follow one another between the fixed ends of the text. */
function holds(text: string, start: number, tail: number, pieces: readonly string[]): boolean {
  const end = text.length - tail
  let at = start
  for (const piece of pieces) {
    const found = text.indexOf(piece, at)
    if (found < 0 || found + piece.length > end) return false
    at = found + piece.length
  }
  return true
}
