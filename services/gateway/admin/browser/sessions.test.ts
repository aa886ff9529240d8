import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeBase64url, poolTable, SharedPool, systemIds, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { createMemoryJournal } from '@plat/state'
import { LookUps } from '../../call/bindings/look-ups.ts'
import { AdminError } from '../error.ts'
import { type BrowserEvent, decodeBrowserEvent } from './events.ts'
import { BrowserSessions, type SessionLookUps } from './sessions.ts'

const MINUTE = 60_000
const person = (user: string, more: object = {}) => ({ user, groups: ['staff'], ...more })

const PEER = '192.0.2.1'

async function find(sessions: BrowserSessions, secret: string) {
  const found = await sessions.find(secret, PEER)
  assert.ok(found !== 'unread')
  return found
}

async function setUp({ total = 5, share = 2 } = {}) {
  const clock = new TestClock()
  const store = createMemoryJournal<BrowserEvent>(() => clock.now())
  const open = (lookUps: SessionLookUps | null = null) =>
    BrowserSessions.open({
      journal: store,
      lookUps,
      clock,
      ids: systemIds(clock),
      idleMs: 10 * MINUTE,
      lifetimeMs: 60 * MINUTE,
      pool: new SharedPool({ name: 'console_sessions', total, shares: [share] }),
      onFault: (error) => assert.fail(String(error)),
    })
  return { clock, store, open, sessions: await open() }
}

test('a session ends when it is unused, and when it is old', async () => {
  const { clock, sessions } = await setUp()
  const ended: string[] = []
  const { secret } = await sessions.begin(person('ada'), null)
  const other = await sessions.begin(person('bob'), null)
  const [used, unused] = [await find(sessions, secret), await find(sessions, other.secret)]
  assert.ok(used !== null && unused !== null)
  sessions.onEnd(used, () => void ended.push('used'))
  sessions.onEnd(unused, () => void ended.push('unused'))
  for (let minute = 0; minute < 59; minute += 9) {
    assert.ok((await find(sessions, secret)) !== null, `minute ${minute}`)
    await clock.advance(9 * MINUTE)
  }
  assert.equal(await find(sessions, other.secret), null)
  assert.equal(await find(sessions, secret), null)
  assert.deepEqual(ended, ['unused', 'used'])
})

test('nothing but the secret of a session finds it, and the journal does not contain the secret', async () => {
  const { sessions, store } = await setUp()
  const { secret } = await sessions.begin(person('ada'), 'the static token')
  for (const guess of ['', 'x', secret.slice(1), `${secret}A`, secret.toLowerCase()])
    assert.equal(await find(sessions, guess), null)
  const found = await find(sessions, secret)
  assert.equal(await find(sessions, found?.key ?? ''), null)
  const stored = JSON.stringify(await Array.fromAsync(store.read(0)))
  assert.ok(!stored.includes(secret) && !stored.includes('the static token'))
})

test('a person keeps the newest sessions of a share, and others are served until all are in use', async () => {
  const { clock, sessions } = await setUp({ total: 3, share: 2 })
  const secrets: string[] = []
  for (let n = 0; n < 4; n++) {
    secrets.push((await sessions.begin(person('ada'), null)).secret)
    await clock.advance(1)
  }
  const alive = await Promise.all(secrets.map(async (secret) => (await find(sessions, secret)) !== null))
  assert.deepEqual(alive, [false, false, true, true])
  await sessions.begin(person('bob'), null)
  await assert.rejects(
    sessions.begin(person('eve'), null),
    (error) => error instanceof AdminError && error.code === 'backlog_full',
  )
  const last = await find(sessions, secrets[3] ?? '')
  assert.ok(last !== null)
  await sessions.endAll(last)
  assert.deepEqual(await Promise.all(secrets.map((secret) => find(sessions, secret))), [null, null, null, null])
  await sessions.begin(person('eve'), null)
})

test('logins at the same time get no more sessions than the share and the total', async () => {
  const { sessions } = await setUp({ total: 5, share: 2 })
  const begin = async (user: string) =>
    sessions.begin(person(user), null).then(
      ({ secret }) => secret,
      (error) => (error instanceof AdminError ? error.code : String(error)),
    )
  const alive = async (secrets: readonly string[]) => {
    const found = await Promise.all(secrets.map((secret) => find(sessions, secret)))
    return found.filter((one) => one !== null).length
  }
  const first = await Promise.all(Array.from({ length: 6 }, () => begin('ada')))
  assert.equal(await alive(first), 2)
  const others = await Promise.all(['bob', 'bob', 'cid', 'cid', 'bob'].map(begin))
  assert.equal(await alive(others), 3)
  assert.ok(others.includes('backlog_full'))
})

test('people of one name at different issuers are different people', async () => {
  const { sessions } = await setUp()
  const known = (issuer: string) => ({ known: { names: ['ada'], subject: { issuer, subject: '1' } } })
  const here = await sessions.begin(person('ada', known('https://one')), null)
  const there = await sessions.begin(person('ada', known('https://other')), null)
  const session = await find(sessions, here.secret)
  assert.ok(session !== null)
  await sessions.endAll(session)
  assert.deepEqual(
    [await find(sessions, here.secret), (await find(sessions, there.secret))?.person?.user],
    [null, 'ada'],
  )
})

test('replicas share sessions, their use, their end, and the use of links', async () => {
  const { clock, open } = await setUp()
  const [one, other] = [await open({ catchUpBy: async () => {} }), await open({ catchUpBy: async () => {} })]
  const { secret } = await one.begin(person('ada'), null)
  assert.equal((await find(other, secret))?.person?.user, 'ada')
  for (let minute = 0; minute < 40; minute += 5) {
    await clock.advance(5 * MINUTE)
    assert.ok((await find(one, secret)) !== null)
  }
  const session = await find(other, secret)
  assert.ok(session !== null, 'its use elsewhere keeps it alive')
  await other.end(session.key)
  assert.equal(await find(one, secret), null)
  const until = clock.now() + MINUTE
  assert.deepEqual(
    [await one.spend('a', until), await other.spend('a', until), await other.spend('b', until)],
    [true, false, true],
  )
})

test('a peer that guesses sessions reads the state within its share, and others are found', async () => {
  const { clock, open } = await setUp()
  let reads = 0
  const pool = new SharedPool({ name: 'unknown_console_sessions' })
  const catchUp = async () => void reads++
  const sessions = await open(new LookUps({ catchUp, pool, clock, log: silentLog }))
  const guess = (address: string) => sessions.find(encodeBase64url(systemIds(clock).random(32)), address)
  const guesses = await Promise.all(Array.from({ length: 1_000 }, () => guess(PEER)))
  const [{ max }] = poolTable.unknown_console_sessions.shares
  assert.equal(reads, max)
  assert.deepEqual(new Set(guesses.slice(max)), new Set(['unread']))
  assert.deepEqual(new Set(guesses.slice(0, max)), new Set([null]))
  const { secret } = await sessions.begin(person('ada'), null)
  const found = await sessions.find(secret, PEER)
  assert.ok(found !== null && found !== 'unread', 'a known session needs no look-up')
  assert.equal(await guess('192.0.2.2'), null)
  assert.equal(reads, max + 1)
  const page = encodeBase64url(systemIds(clock).random(32))
  await Promise.all(Array.from({ length: 1_000 }, () => sessions.find(page, '192.0.2.3')))
  assert.equal(reads, max + 2, 'requests with one cookie share a read')
  // Addresses of one /64 are one peer.
  for (let n = 0; n < 100; n++) await guess(`2001:db8:1:2::${n}`)
  assert.equal(reads, 2 * max + 2)
  await clock.advance(1_000)
  assert.equal(pool.used, 0)
  assert.equal(await guess(PEER), null)
})

test('an event of another version is refused with an error that names its kind', () => {
  for (const event of [{ t: 'renamed' }, { t: 'seen', at: 'today' }, null]) {
    assert.throws(
      () => decodeBrowserEvent(event),
      /an event of the sessions of the console .* not known to this version/,
    )
  }
})

test('a compacted journal restores the sessions that are alive', async () => {
  const { clock, sessions, store, open } = await setUp()
  const { secret } = await sessions.begin(person('ada', { auth: { acr: 'mfa', amr: ['otp'], at: 1 } }), null)
  for (let n = 0; n < 600; n++) {
    const brief = await find(sessions, (await sessions.begin(person('bob'), null)).secret)
    if (brief !== null) await sessions.end(brief.key)
  }
  await clock.advance(5_000)
  const events = await Array.fromAsync(store.read(0))
  assert.ok(events.length < 10, `${events.length} events`)
  for (const { event } of events) decodeBrowserEvent(JSON.parse(JSON.stringify(event)))
  const restored = await find(await open(), secret)
  assert.deepEqual(restored?.person, person('ada', { auth: { acr: 'mfa', amr: ['otp'], at: 1 } }))
})
