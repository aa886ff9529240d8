/** Longest text that the engine searches for: it may compare all of it at each place, so its time is a product of two lengths. */
export const ENGINE_CHARS = 16

/** Returns the first place of a text in another one from `from` on; -1: it is not there. */
export type TextSearch = (text: string, from?: number) => number

/**
 * Returns a search for a text, in time proportional to the text that is searched: `indexOf` takes a second for 4,096 characters in a million
 * that are chosen for it. For texts of others that are searched for texts of others.
 */
export function searchFor(wanted: string): TextSearch {
  if (wanted.length <= ENGINE_CHARS) return (text, from = 0) => text.indexOf(wanted, from)
  const overlaps = overlapsOf(wanted)
  const begin = wanted.slice(0, ENGINE_CHARS)
  return (text, from = 0) => {
    let matched = 0
    for (let at = from; at < text.length; ) {
      if (matched === 0) {
        const next = text.indexOf(begin, at)
        if (next === -1) return -1
        at = next + ENGINE_CHARS
        matched = ENGINE_CHARS
        continue
      }
      const code = text.charCodeAt(at++)
      while (matched > 0 && wanted.charCodeAt(matched) !== code) matched = overlaps[matched - 1] ?? 0
      if (wanted.charCodeAt(matched) === code) matched++
      if (matched === wanted.length) return at - matched
    }
    return -1
  }
}

/** For each beginning of a text: how many of its last characters are its first as well (Knuth, Morris and Pratt). */
function overlapsOf(text: string): Int32Array {
  const overlaps = new Int32Array(text.length)
  let matched = 0
  for (let at = 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    while (matched > 0 && text.charCodeAt(matched) !== code) matched = overlaps[matched - 1] ?? 0
    if (text.charCodeAt(matched) === code) matched++
    overlaps[at] = matched
  }
  return overlaps
}
