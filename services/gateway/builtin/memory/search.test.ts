import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Item } from './memory.ts'
import { SEARCH_MAX_CHARS, searchItems } from './search.ts'

const item = (key: string, text: string, at = 0): Item => ({
  ...{ key, text, at, keepUntil: 0, version: 1, taints: [] },
  by: { agent: 'a', session: 's', person: null },
})

const keys = async (items: readonly Item[], query: string, most = 10) =>
  (await searchItems(items, query, most)).found.map(({ item: { key } }) => key)

test('items are ranked by number of matching words, then by their frequency, then by age', async () => {
  const items = [
    item('a', 'tea', 1),
    item('b', 'Tea and tea and TEA', 2),
    item('c', 'coffee', 3),
    item('d', 'tea with milk', 4),
    item('e', 'tea', 5),
  ]
  assert.deepEqual(await keys(items, 'tea, milk?'), ['d', 'b', 'e', 'a'])
  assert.deepEqual(await keys(items, 'TEA', 2), ['b', 'e'])
  assert.deepEqual(await keys(items, 'cocoa'), [])
  assert.deepEqual(await keys(items, '?! …'), [])
})

test('words in keys match, all scripts are supported, and a snippet has the first match', async () => {
  const items = [
    item('customers/ada', 'prefers calls'),
    item('x', `${'.'.repeat(1000)} Ünïcode Москва ${'.'.repeat(1000)}`),
  ]
  assert.deepEqual(await keys(items, 'ada'), ['customers/ada'])
  assert.deepEqual(await keys(items, 'МОСКВА'), ['x'])
  const [found] = (await searchItems(items, 'ünïcode', 1)).found
  assert.match(found?.snippet ?? '', /^\.{79} Ünïcode/)
  assert.equal(found?.snippet.length, 400)
})

test('a search reads a limited amount, and reports unread items', async () => {
  const long = 'x'.repeat(SEARCH_MAX_CHARS / 2)
  const items = [item('old', `${long} word`, 1), item('newer', 'word', 2), item('newest', long, 3)]
  const { found, unread } = await searchItems(items, 'word', 10)
  assert.deepEqual([found.map(({ item: { key } }) => key), unread], [['newer'], 1])
})

test('a search reads many items in slices, between which other callbacks run', async () => {
  const items = Array.from({ length: 40 }, (_, at) => item(`k${at}`, 'a'.repeat(60_000), at))
  let turns = 0
  const turn = () => {
    turns++
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  const words = Array.from({ length: 3 }, (_, at) => `${'a'.repeat(50)}b${'a'.repeat(40 + at)}`)
  const { found } = await searchItems(items, `${words.join(' ')} aa`, 10)
  clearImmediate(next)
  assert.equal(found.length, 10)
  assert.ok(turns >= 1)
})
