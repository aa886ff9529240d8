import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { type Addresses, NameLookups } from './name-lookups.ts'

const found: Addresses = [{ address: '192.0.2.1', family: 4 }]

/** Names that begin with `slow` resolve only when the test calls `finish`. */
function setUp() {
  const clock = new TestClock()
  const started: string[] = []
  const slow = new Map<string, PromiseWithResolvers<Addresses>>()
  const lookups = new NameLookups((hostname) => {
    started.push(hostname)
    if (hostname.startsWith('missing'))
      return Promise.reject(Object.assign(new Error('missing'), { code: 'ENOTFOUND' }))
    if (!hostname.startsWith('slow')) return Promise.resolve(found)
    const pending = Promise.withResolvers<Addresses>()
    slow.set(hostname, pending)
    return pending.promise
  }, clock)
  const finish = (hostname: string) => slow.get(hostname)?.resolve(found)
  return { clock, lookups, started, finish }
}

test('slow names of one caller do not delay the names of another', async () => {
  const { clock, lookups, started, finish } = setUp()
  const refused: string[] = []
  const slow = Array.from({ length: 128 }, (_, i) => lookups.resolve(`slow-${i}.example`, 'a').catch(String))
  assert.deepEqual(started, ['slow-0.example', 'slow-1.example'], 'only two threads are occupied')
  await assert.rejects(
    lookups.resolve('slow-x.example', 'a', (bound) => void refused.push(bound)),
    { name: 'TooManyLookupsError' },
  )
  assert.deepEqual(refused, ['share'])
  assert.deepEqual(await lookups.resolve('fast.example', 'b'), found)
  assert.equal(lookups.used, 128)
  await clock.advance(5000)
  for (const result of await Promise.all(slow)) assert.match(result.toString(), /TimeoutError|not resolved within/)
  assert.equal(lookups.used, 0)
  assert.equal(started.length, 3, 'abandoned look-ups never start')
  const later = lookups.resolve('fast.example', 'a')
  finish('slow-0.example')
  assert.deepEqual(await later, found, 'a thread that is free again serves the same caller')
})

test('concurrent look-ups of one name share one query, across callers', async () => {
  const { lookups, started, finish } = setUp()
  const both = [lookups.resolve('slow.example', 'a'), lookups.resolve('slow.example', 'b')]
  assert.deepEqual(started, ['slow.example'])
  finish('slow.example')
  assert.deepEqual(await Promise.all(both), [found, found])
  await Promise.all([lookups.resolve('fast.example', 'a')])
  await lookups.resolve('fast.example', 'a')
  assert.equal(started.length, 3, 'an answer is not kept')
})

test('a name that does not exist is queried once a second', async () => {
  const { clock, lookups, started } = setUp()
  for (let i = 0; i < 3; i++) await assert.rejects(lookups.resolve('missing.example', 'a'), { code: 'ENOTFOUND' })
  assert.equal(started.length, 1)
  await clock.advance(1000)
  await assert.rejects(lookups.resolve('missing.example', 'a'))
  assert.equal(started.length, 2)
})
