import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_SESSIONS, MAX_SESSIONS_OF_AGENT, SessionBook } from './book.ts'

const outcome = {
  kind: 'outcome',
  namespace: 'shop',
  agent: 'buyer',
  session: 's1',
  user: 'alice',
  facts: { tier: 'tier-1', groups: ['buyers'] },
}

test('a call counts once, by its last record, with what it cost and whether it was refused', () => {
  const book = new SessionBook()
  book.see({ ...outcome, kind: 'intent' }, 1000)
  book.see({ ...outcome, costMicros: 7 }, 2000)
  book.see({ ...outcome, kind: 'decision', action: 'deny' }, 3000)
  book.see({ kind: 'checkpoint' }, 4000)
  const [only, ...others] = book.sessions()
  assert.deepEqual(others, [])
  assert.deepEqual(only, {
    tenant: '',
    namespace: 'shop',
    agent: 'buyer',
    session: 's1',
    user: 'alice',
    groups: ['buyers'],
    tier: 'tier-1',
    startedAt: 2000,
    lastActivity: 3000,
    calls: 2,
    denied: 1,
    spentMicros: 7,
  })
})

test('sandbox usage adds to the spent money, but is neither a call nor activity', () => {
  const book = new SessionBook()
  book.see(outcome, 1000)
  book.see({ ...outcome, facts: undefined, op: 'usage.sandbox', costMicros: 5 }, 2000)
  const session = book.get({ namespace: 'shop', agent: 'buyer', session: 's1' })
  assert.deepEqual(
    [session?.calls, session?.spentMicros, session?.lastActivity, session?.groups],
    [1, 5, 1000, ['buyers']],
  )
  assert.equal(book.get({ namespace: 'shop', agent: 'buyer', session: 's2' }), undefined)
})

test('sessions of the same name are distinguished by agent and namespace', () => {
  const book = new SessionBook()
  for (const own of [{}, { agent: 'seller' }, { namespace: 'bank' }, {}]) book.see({ ...outcome, ...own }, 1000)
  assert.deepEqual(
    [...book.sessions()].map(({ namespace, agent, calls }) => [namespace, agent, calls]),
    [
      ['shop', 'buyer', 2],
      ['shop', 'seller', 1],
      ['bank', 'buyer', 1],
    ],
  )
})

test('records from before a restart that are read late change the start and not the last activity', () => {
  const book = new SessionBook()
  book.see({ ...outcome, user: 'bob' }, 5000)
  book.see({ ...outcome, user: 'alice' }, 1000)
  const [{ startedAt, lastActivity, user, calls } = assert.fail()] = book.sessions()
  assert.deepEqual(
    { startedAt, lastActivity, user, calls },
    { startedAt: 1000, lastActivity: 5000, user: 'bob', calls: 2 },
  )
})

test('a full list forgets the sessions that were idle for longest', () => {
  const book = new SessionBook()
  const agents = MAX_SESSIONS / MAX_SESSIONS_OF_AGENT
  for (let n = 0; n < MAX_SESSIONS; n++) book.see({ ...outcome, agent: `a${n % agents}`, session: `s${n}` }, n)
  book.see({ ...outcome, agent: 'a0', session: 's0' }, MAX_SESSIONS)
  assert.equal(book.size, MAX_SESSIONS)
  book.see({ ...outcome, agent: 'new', session: 'new' }, MAX_SESSIONS + 1)
  assert.equal(book.size, MAX_SESSIONS / 2 + 1)
  const sessions = new Set([...book.sessions()].map(({ session }) => session))
  assert.ok(sessions.has('new') && sessions.has('s0') && !sessions.has('s1'))
})

test('an agent at its share loses its own oldest sessions, and a full list those of the agents with the most', () => {
  const book = new SessionBook()
  const see = (agent: string, n: number, at: number) => book.see({ ...outcome, agent, session: `s${n}` }, at)
  see('modest', 0, 0)
  for (let n = 0; n <= MAX_SESSIONS_OF_AGENT; n++) see('greedy', n, 1 + n)
  const of = (agent: string) => [...book.sessions()].filter((one) => one.agent === agent).length
  assert.deepEqual([of('greedy'), of('modest')], [MAX_SESSIONS_OF_AGENT / 2 + 1, 1])
  for (let agent = 0; book.size < MAX_SESSIONS; agent++)
    for (let n = 0; n < MAX_SESSIONS_OF_AGENT && book.size < MAX_SESSIONS; n++) see(`many${agent}`, n, 10_000 + n)
  see('another', 0, 20_000)
  assert.deepEqual([of('modest'), of('another'), book.size], [1, 1, MAX_SESSIONS / 2 + 1])
})
