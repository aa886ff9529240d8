/** Why something is left out. */
export const OVER_SHARE = 'exceeds the share of its namespace'

/** Something that takes room in an output that all namespaces share. */
export interface Piece {
  readonly key: string
  readonly namespace: string
  readonly bytes: number
}

/**
 * Shares of `limit` bytes, by namespace: even ones, and what one namespace does not use goes to the others. Returns only the namespaces that
 * need more than their share.
 */
export function exceededShares(needed: ReadonlyMap<string, number>, limit: number): ReadonlyMap<string, number> {
  const exceeded = new Map<string, number>()
  const ascending = [...needed].toSorted(([, a], [, b]) => a - b)
  let left = Math.max(0, limit)
  for (const [index, [namespace, bytes]] of ascending.entries()) {
    const share = Math.floor(left / (ascending.length - index))
    if (bytes > share) exceeded.set(namespace, share)
    left -= Math.min(bytes, share)
  }
  return exceeded
}

/**
 * Keys of the pieces to leave out so that the rest fits into `limit` bytes: only a namespace above its share loses pieces, the largest
 * first. Empty when everything fits.
 */
export function piecesOverShare(pieces: readonly Piece[], limit: number): ReadonlySet<string> {
  const over = new Set<string>()
  const owners = Map.groupBy(pieces, ({ namespace }) => namespace)
  const needed = new Map([...owners].map(([namespace, own]) => [namespace, sumOf(own)]))
  for (const [namespace, share] of exceededShares(needed, limit)) {
    let granted = needed.get(namespace) ?? 0
    for (const piece of (owners.get(namespace) ?? []).toSorted(largestFirst)) {
      if (granted <= share) break
      granted -= piece.bytes
      over.add(piece.key)
    }
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
