import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PoolBound, poolTable, TestClock } from '@plat/core'
import { deny, isDenial } from '../../../call/index.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import { type UpstreamSession, UpstreamSessions } from './sessions.ts'

const [{ max: SHARE }] = poolTable.mcp_sessions.shares
const session = (id: string) => ({ id, revision: '2025-11-25', client: {} })
const upstream = (id: string): UpstreamSession => ({
  session: { id, target: 'notes' },
  revision: '2025-11-25',
  capabilities: {},
})
const agent = (name: string) => ({ ...testIdentity, agent: name })

function setup() {
  const clock = new TestClock()
  const refused: PoolBound[] = []
  const sessions = new UpstreamSessions(clock, { watch() {}, refused: (bound) => void refused.push(bound) })
  return { clock, refused, sessions }
}

test('a session at a server is opened once, and again after it was forgotten or could not be opened', async () => {
  const { sessions } = setup()
  const client = sessions.of(agent('a'), session('1'))
  let opened = 0
  const open = async () => upstream(String(++opened))
  const [first, second] = await Promise.all([sessions.at(client, 'notes', open), sessions.at(client, 'notes', open)])
  assert.ok(!isDenial(first) && first === second)
  await sessions.forget(client, 'notes', first)
  await sessions.at(client, 'notes', open)
  await sessions.forget(client, 'notes', first)
  await sessions.at(client, 'notes', open)
  assert.equal(opened, 2, 'only the session that was lost is forgotten')
  const failed = await sessions.at(client, 'down', async () => deny('upstream_error', 'no'))
  assert.ok(isDenial(failed))
  assert.ok(!isDenial(await sessions.at(client, 'down', open)))
})

test('an agent that exceeds its share loses its own oldest session; another agent keeps its own', () => {
  const { sessions, refused } = setup()
  const other = sessions.of(agent('b'), session('1'))
  const oldest = sessions.of(agent('a'), session('0'))
  for (let count = 1; count <= SHARE; count++) sessions.of(agent('a'), session(String(count)))
  assert.deepEqual(refused, ['share'])
  assert.equal(sessions.of(agent('b'), session('1')), other)
  assert.notEqual(sessions.of(agent('a'), session('0')), oldest)
})

test('a session that is not used for an hour is forgotten, and one session is not that of another caller', async () => {
  const { sessions, clock } = setup()
  const idle = sessions.of(agent('a'), session('1'))
  assert.notEqual(sessions.of({ ...agent('a'), session: 'other' }, session('1')), idle)
  await clock.advance(3_600_001)
  sessions.of(agent('a'), session('2'))
  assert.notEqual(sessions.of(agent('a'), session('1')), idle)
})

test('an idle session is reported although no client comes, and not while it is in use', async () => {
  const { sessions, clock } = setup()
  const forgotten: unknown[] = []
  sessions.onForgotten = (client) => void forgotten.push(client)
  const idle = sessions.of(agent('a'), session('1'))
  const used = sessions.of(agent('a'), session('2'))
  used.calls.add({})
  const streamed = sessions.of(agent('a'), session('3'))
  streamed.listeners.add(() => {})
  await clock.advance(5_000_000)
  assert.deepEqual(forgotten, [idle])
})
