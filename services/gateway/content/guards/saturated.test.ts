import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolTable, TestClock } from '@plat/core'
import type { Fetched } from '@plat/http'
import { silentLog } from '@plat/process'
import { isDenial, unresolved } from '../../call/index.ts'
import { testCall } from '../../call/testing/call.ts'
import { testIdentity } from '../../call/testing/identity.ts'
import { Guard } from './guard.ts'
import { Guards } from './guards.ts'
import { testGuard } from './testing/config.ts'
import { typeOf } from './types/types.ts'

test('a session beyond its share of a guard is refused even with failOpen, while the guard serves other sessions', async () => {
  const answer = Promise.withResolvers<Fetched>()
  const guard = new Guard({
    config: { ...testGuard, on: ['toolArgs'], failOpen: true },
    type: typeOf('http-json', {}),
    dialer: { fetchBytes: () => answer.promise },
    connection: {},
    clock: new TestClock(),
    log: silentLog,
    onTook() {},
  })
  let unread = 0
  const guards = new Guards({
    guards: [guard],
    taint: async () => null,
    labelsOf: () => [],
    onUnread: () => void unread++,
    metrics: { checked() {}, blocked() {} },
  })
  const judge = (session: string) => {
    const facts = { identity: { ...testIdentity, session }, target: unresolved, redacted: null }
    return guards.judge(testCall(facts, { name: 'send', body: null }), [guard], { text: 'x', target: 'toolArgs' })
  }
  const waiting = Array.from({ length: poolTable.guard_texts.shares[0].max }, () => judge('greedy'))
  const refused = await judge('greedy')
  assert.ok(isDenial(refused) && refused.code === 'guard_unavailable', JSON.stringify(refused))
  assert.equal(unread, 0, 'nothing passed unread')
  const other = judge('other')
  answer.resolve({ status: 200, headers: {}, bytes: Buffer.from('{"score":1}') })
  assert.deepEqual(await other, [testGuard.label], 'the text of another session was read')
  await Promise.all(waiting)
})
