import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TestClock } from '@plat/core'
import { type Log, silentLog } from '@plat/process'
import { CachedCredential } from './cached-credential.ts'
import type { Expiring } from './cloud.ts'

const MINUTE = 60_000

/** A credential with a lifetime of an hour, from a cloud that can fail. */
function setUp(lasts: number | null = 60 * MINUTE) {
  const clock = new TestClock()
  const logged: object[] = []
  const log: Log = { ...silentLog, error: (fields) => void logged.push(fields) }
  const cloud = { fetched: 0, down: false }
  const lend = async (): Promise<Expiring<string>> => {
    cloud.fetched++
    if (cloud.down) throw new Error('the cloud is down')
    return { value: `token-${cloud.fetched}`, expiresAt: lasts === null ? null : clock.now() + lasts }
  }
  const credential = new CachedCredential<string>({ name: 'cloud', clock, log, lend })
  return { clock, logged, cloud, credential }
}

test('it is fetched once for any number of uses, and again before it expires', async () => {
  const { clock, cloud, credential } = setUp()
  assert.equal(credential.current, null)
  await Promise.all([credential.start(), credential.start()])
  await credential.start()
  assert.deepEqual([credential.current, cloud.fetched], ['token-1', 1])
  await clock.advance(54 * MINUTE)
  assert.equal(credential.current, 'token-1')
  await clock.advance(2 * MINUTE)
  assert.deepEqual([credential.current, cloud.fetched], ['token-2', 2])
  credential.close()
  await clock.advance(600 * MINUTE)
  assert.deepEqual([credential.current, cloud.fetched], [null, 2])
})

test('while its cloud is down the last one is used until it expires, and then none', async () => {
  const { clock, cloud, credential, logged } = setUp()
  await credential.start()
  cloud.down = true
  await clock.advance(59 * MINUTE)
  assert.equal(credential.current, 'token-1')
  assert.ok(cloud.fetched > 3, 'it is fetched repeatedly')
  await clock.advance(MINUTE)
  assert.equal(credential.current, null)
  const before = cloud.fetched
  await clock.advance(10 * MINUTE)
  assert.ok(cloud.fetched - before <= 10, 'no more often than once a minute')
  cloud.down = false
  await clock.advance(MINUTE)
  assert.match(credential.current ?? '', /^token-/)
  assert.deepEqual(logged[0], { source: 'cloud', error: 'the cloud is down' })
})

test('a failed start resolves, and is retried soon', async () => {
  const { clock, cloud, credential } = setUp()
  cloud.down = true
  await credential.start()
  assert.equal(credential.current, null)
  cloud.down = false
  await clock.advance(1000)
  assert.equal(credential.current, 'token-2')
})

test('a credential without expiration is fetched once, and a short-lived one at a limited rate', async () => {
  const forever = setUp(null)
  await forever.credential.start()
  await forever.clock.advance(6000 * MINUTE)
  assert.deepEqual([forever.credential.current, forever.cloud.fetched], ['token-1', 1])
  const short = setUp(15_000)
  await short.credential.start()
  await short.clock.advance(MINUTE)
  assert.ok(short.cloud.fetched <= 10, String(short.cloud.fetched))
})
