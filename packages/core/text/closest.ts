/** Longer words are not compared: the work grows with the square of the length. */
const MAX_WORD_LENGTH = 64

/**
 * Returns the candidate most similar to `word`, for "did you mean": at most a third of its letters differ, ignoring case. The first of two equally
 * close ones; null when none is close.
 */
export function closest(word: string, candidates: Iterable<string>): string | null {
  if (word.length > MAX_WORD_LENGTH) return null
  const typed = word.toLowerCase()
  let best: string | null = null
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue
    const distance = editDistance(typed, candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Levenshtein distance. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let line = 1; line <= from.length; line++) {
    const next = [line]
    for (let column = 1; column <= to.length; column++) {
      const substituted = (row[column - 1] ?? 0) + (from[line - 1] === to[column - 1] ? 0 : 1)
      next.push(Math.min(substituted, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[to.length] ?? 0
}
