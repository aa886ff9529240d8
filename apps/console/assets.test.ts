import assert from 'node:assert/strict'
import { test } from 'node:test'
import { consoleAssets } from './index.ts'

/** Compressed bytes that the first page may load. */
const MAX_FIRST_PAGE_BYTES = 150 * 1024
/** Compressed bytes of the viewer, which only the page of a view loads. */
const MAX_LATER_BYTES = 100 * 1024
const LATER = /^assets\/screen\./

test('the first page loads at most 150 KB, and nothing that is not in the list', async () => {
  const assets = await consoleAssets()
  const isLater = (path: string) => LATER.test(path)
  const sizeOf = (some: typeof assets) => some.reduce((sum, { bytes, brotli }) => sum + (brotli ?? bytes).length, 0)
  const first = sizeOf(assets.filter(({ path }) => !isLater(path)))
  assert.ok(first <= MAX_FIRST_PAGE_BYTES, `${first} bytes`)
  const later = assets.filter(({ path }) => isLater(path))
  assert.equal(later.length, 1)
  assert.ok(sizeOf(later) <= MAX_LATER_BYTES, `${sizeOf(later)} bytes`)
  assert.match(String(later[0]?.bytes), /Mozilla Public License/)
  const page = assets.find(({ path }) => path === 'index.html')
  assert.equal(page?.immutable, false)
  const named = [...String(page?.bytes).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url)
  const files = assets
    .filter(({ immutable, path }) => immutable && !isLater(path))
    .map(({ path }) => `/console/${path}`)
  assert.deepEqual(named.sort(), files.sort())
})

test('the page needs no inline script, no inline style and no markup at run time', async () => {
  for (const { path, bytes } of await consoleAssets()) {
    const text = bytes.toString()
    if (path === 'index.html') assert.doesNotMatch(text, /<style|style=|<script(?![^>]+src=)|\son\w+=/)
    assert.doesNotMatch(
      text,
      /\beval\(|new Function\(|insertAdjacentHTML|document\.write|https?:\/\/(?!www\.w3\.org\/)/,
    )
  }
})
