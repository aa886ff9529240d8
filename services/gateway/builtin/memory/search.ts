import type { Item } from './memory.ts'

/** Words of one question that count. */
const WORDS_MAX = 16
/** Characters that one search reads, the newest items first; what it did not read it tells. */
export const SEARCH_MAX_CHARS = 4 * 1024 * 1024
/** Characters of a text that are told of an item that was found, and how many of them stand before the first word. */
const SNIPPET_CHARS = 400
const BEFORE_CHARS = 80
/** How often a word counts in one text. */
const COUNTS_MAX = 8
/** A word in a key counts as so many in a text. */
const KEY_WEIGHT = 4

/** One item that was found. */
export interface FoundItem {
  readonly item: Item
  readonly snippet: string
}

/** What a search found, the best first, and how many items it did not read. */
export interface SearchResult {
  readonly found: readonly FoundItem[]
  readonly unread: number
}

/**
 * Plain words, letter case aside: an item counts when any of them begins, ends or stands within a word of it. What has more of the words
 * comes first, then what has them more often, then what is newer. Linear: each item is read once.
 */
export function searchItems(items: readonly Item[], query: string, most: number): SearchResult {
  const words = wordsOf(query)
  const newestFirst = items.toSorted((a, b) => b.at - a.at)
  const ranked: (FoundItem & { readonly words: number; readonly times: number })[] = []
  let left = SEARCH_MAX_CHARS
  let read = 0
  for (const item of newestFirst) {
    left -= item.text.length
    if (left < 0) break
    read++
    const rank = rankOf(item, words)
    if (rank !== null) ranked.push({ item, ...rank })
  }
  ranked.sort((a, b) => b.words - a.words || b.times - a.times)
  return { found: ranked.slice(0, most), unread: newestFirst.length - read }
}

function wordsOf(query: string): readonly string[] {
  return [...new Set(folded(query).split(/[^\p{L}\p{N}]+/u))].filter((word) => word !== '').slice(0, WORDS_MAX)
}

function rankOf({ key, text }: Item, words: readonly string[]) {
  const [foldedKey, foldedText] = [folded(key), folded(text)]
  let [hits, times, first] = [0, 0, foldedText.length]
  for (const word of words) {
    const [count, at] = countOf(foldedText, word)
    const inKey = foldedKey.includes(word) ? KEY_WEIGHT : 0
    if (count + inKey === 0) continue
    hits++
    times += count + inKey
    if (count > 0) first = Math.min(first, at)
  }
  return hits === 0 ? null : { words: hits, times, snippet: snippetOf(text, first) }
}

function countOf(text: string, word: string): readonly [count: number, first: number] {
  const first = text.indexOf(word)
  let count = 0
  for (let at = first; at !== -1 && count < COUNTS_MAX; at = text.indexOf(word, at + word.length)) count++
  return [count, first]
}

/** Places in the folded text are roughly those in the text. */
function snippetOf(text: string, at: number): string {
  const start = at >= text.length ? 0 : Math.max(0, at - BEFORE_CHARS)
  return text.slice(start, start + SNIPPET_CHARS).toWellFormed()
}

function folded(text: string): string {
  return text.toLowerCase()
}
