import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SEARCHES_MAX, Turns } from './turns.ts'

test('a caller has a limited number of searches at a time, which does not limit others', async () => {
  const turns = new Turns()
  const { promise, resolve } = Promise.withResolvers<string>()
  const running = Array.from({ length: SEARCHES_MAX }, () => turns.run('user:ada', () => promise))
  await assert.rejects(
    turns.run('user:ada', async () => 'one more'),
    { code: 'rate_limited' },
  )
  assert.equal(await turns.run('user:bob', async () => 'found'), 'found')
  resolve('found')
  await Promise.all(running)
  await assert.rejects(
    turns.run('user:ada', () => Promise.reject(new Error('broken'))),
    /broken/,
  )
  assert.equal(await turns.run('user:ada', async () => 'found'), 'found')
})
