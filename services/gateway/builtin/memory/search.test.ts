import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Item } from './memory.ts'
import { SEARCH_MAX_CHARS, searchItems } from './search.ts'

const item = (key: string, text: string, at = 0): Item => ({
  ...{ key, text, at, keepUntil: 0, version: 1, taints: [] },
  by: { agent: 'a', session: 's', person: null },
})

const keys = (items: readonly Item[], query: string, most = 10) =>
  searchItems(items, query, most).found.map(({ item: { key } }) => key)

test('items are ranked by number of matching words, then by their frequency, then by age', () => {
  const items = [
    item('a', 'tea', 1),
    item('b', 'Tea and tea and TEA', 2),
    item('c', 'coffee', 3),
    item('d', 'tea with milk', 4),
    item('e', 'tea', 5),
  ]
  assert.deepEqual(keys(items, 'tea, milk?'), ['d', 'b', 'e', 'a'])
  assert.deepEqual(keys(items, 'TEA', 2), ['b', 'e'])
  assert.deepEqual(keys(items, 'cocoa'), [])
  assert.deepEqual(keys(items, '?! …'), [])
})

test('words in keys match, all scripts are supported, and a snippet has the first match', () => {
  const items = [
    item('customers/ada', 'prefers calls'),
    item('x', `${'.'.repeat(1000)} Ünïcode Москва ${'.'.repeat(1000)}`),
  ]
  assert.deepEqual(keys(items, 'ada'), ['customers/ada'])
  assert.deepEqual(keys(items, 'МОСКВА'), ['x'])
  const [found] = searchItems(items, 'ünïcode', 1).found
  assert.match(found?.snippet ?? '', /^\.{79} Ünïcode/)
  assert.equal(found?.snippet.length, 400)
})

test('a search reads a limited amount, and reports unread items', () => {
  const long = 'x'.repeat(SEARCH_MAX_CHARS / 2)
  const items = [item('old', `${long} word`, 1), item('newer', 'word', 2), item('newest', long, 3)]
  const { found, unread } = searchItems(items, 'word', 10)
  assert.deepEqual([found.map(({ item: { key } }) => key), unread], [['newer'], 1])
})
