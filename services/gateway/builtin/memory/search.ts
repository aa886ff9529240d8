import { mapInSlices, searchFor, type TextSearch } from '@plat/core'
import type { Item } from './memory.ts'

/** Maximum number of words in a query. */
const WORDS_MAX = 16
/** Maximum number of characters read per search, the newest items first; unread items are reported. */
export const SEARCH_MAX_CHARS = 4 * 1024 * 1024
/** Maximum length of a snippet, and of its part before the first match, in characters. */
const SNIPPET_CHARS = 400
const BEFORE_CHARS = 80
/** Maximum counted occurrences of a word per text. */
const COUNTS_MAX = 8
/** Weight of a word in a key, in occurrences. */
const KEY_WEIGHT = 4

/** A matching item. */
export interface FoundItem {
  readonly item: Item
  readonly snippet: string
}

/** Matching items, the best first, and the number of unread items. */
export interface SearchResult {
  readonly found: readonly FoundItem[]
  readonly unread: number
}

/**
 * Searches plain words, ignoring case: an item matches if any of them occurs in it, also within words. Items are ranked by number of
 * matching words, then by frequency, then by age. Linear: each item is read once for each word, in slices.
 */
export async function searchItems(items: readonly Item[], query: string, most: number): Promise<SearchResult> {
  const words = wordsOf(query)
  const newestFirst = items.toSorted((a, b) => b.at - a.at)
  let left = SEARCH_MAX_CHARS
  const unread = newestFirst.findIndex(({ text }) => {
    left -= text.length
    return left < 0
  })
  const readable = unread === -1 ? newestFirst : newestFirst.slice(0, unread)
  const ranks = await mapInSlices(readable, (item) => rankOf(item, words))
  const ranked = ranks.filter((rank) => rank !== null)
  ranked.sort((a, b) => b.words - a.words || b.times - a.times)
  return { found: ranked.slice(0, most), unread: newestFirst.length - readable.length }
}

interface Word {
  readonly length: number
  readonly search: TextSearch
}

function wordsOf(query: string): readonly Word[] {
  const words = [...new Set(folded(query).split(/[^\p{L}\p{N}]+/u))].filter((word) => word !== '').slice(0, WORDS_MAX)
  return words.map((word) => ({ length: word.length, search: searchFor(word) }))
}

function rankOf(item: Item, words: readonly Word[]) {
  const { key, text } = item
  const [foldedKey, foldedText] = [folded(key), folded(text)]
  let [hits, times, first] = [0, 0, foldedText.length]
  for (const word of words) {
    const [count, at] = countOf(foldedText, word)
    const inKey = word.search(foldedKey) === -1 ? 0 : KEY_WEIGHT
    if (count + inKey === 0) continue
    hits++
    times += count + inKey
    if (count > 0) first = Math.min(first, at)
  }
  return hits === 0 ? null : { item, words: hits, times, snippet: snippetOf(text, first) }
}

function countOf(text: string, { length, search }: Word): readonly [count: number, first: number] {
  const first = search(text)
  let count = 0
  for (let at = first; at !== -1 && count < COUNTS_MAX; at = search(text, at + length)) count++
  return [count, first]
}

/** Positions in the folded text approximate those in the text. */
function snippetOf(text: string, at: number): string {
  const start = at >= text.length ? 0 : Math.max(0, at - BEFORE_CHARS)
  return text.slice(start, start + SNIPPET_CHARS).toWellFormed()
}

function folded(text: string): string {
  return text.toLowerCase()
}
