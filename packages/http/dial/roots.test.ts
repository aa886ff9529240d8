import assert from 'node:assert/strict'
import { test } from 'node:test'
import { getCACertificates } from 'node:tls'
import { rootsWith } from './roots.ts'

test("a bundle is trusted in addition to the system's roots", () => {
  const roots = rootsWith('bundle')
  assert.equal(roots.at(-1), 'bundle')
  assert.deepEqual(roots.slice(0, -1), getCACertificates('default'))
  assert.ok(roots.length > 1)
})
