/** Why something is left out. */
export const OVER_SHARE = 'exceeds the share of its namespace'

/** Something that takes room in an output that all namespaces share. */
export interface Piece {
  readonly key: string
  readonly namespace: string
  readonly bytes: number
}

/**
 * Keys of the pieces to leave out so that the rest fits into `limit` bytes. Namespaces share the room evenly, and what one does not use
 * goes to the others: only a namespace above its share loses pieces, the largest first. Empty when everything fits.
 */
export function piecesOverShare(pieces: readonly Piece[], limit: number): ReadonlySet<string> {
  const over = new Set<string>()
  if (sumOf(pieces) <= limit) return over
  const owners = [...Map.groupBy(pieces, ({ namespace }) => namespace).values()]
    .map((own) => ({ own, bytes: sumOf(own) }))
    .toSorted((a, b) => a.bytes - b.bytes)
  let left = limit
  for (const [index, { own, bytes }] of owners.entries()) {
    const share = Math.floor(left / (owners.length - index))
    let kept = bytes
    for (const piece of own.toSorted(largestFirst)) {
      if (kept <= share) break
      kept -= piece.bytes
      over.add(piece.key)
    }
    left -= kept
  }
  return over
}

function sumOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** The same pieces always give the same order. */
function largestFirst(a: Piece, b: Piece): number {
  return b.bytes - a.bytes || (a.key < b.key ? -1 : 1)
}
