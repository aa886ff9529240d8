import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { Continuity, type OriginRow } from './continuity.ts'

const ORIGIN = 'the-database'
const OUT_OF_TIME = /gone back in time/

/** State of a gateway that has seen a database: epoch 3, own beat 7, transaction 100 acknowledged. */
async function seen(): Promise<{ readonly continuity: Continuity; readonly events: (string | null)[] }> {
  const events: (string | null)[] = []
  const continuity = await Continuity.open({
    path: '',
    ids: systemIds(systemClock),
    warn: assert.fail,
    onLost: (why) => void events.push(why),
    onAdopted: () => void events.push(null),
  })
  check(continuity, { beat: null })
  continuity.sawBeat(7, continuity.mark)
  continuity.sawTransaction('100')
  return { continuity, events }
}

/** Checks a response of the database against the mark from before the read. */
function check(continuity: Continuity, change: Partial<OriginRow>, mark = continuity.mark): void {
  continuity.check({ id: ORIGIN, epoch: '3', adopts: [], lost: null, beat: '7', xid: '101', ...change }, mark)
}

test('a database with more than was seen has lost nothing', async () => {
  const { continuity } = await seen()
  for (const change of [{}, { beat: '8' }, { xid: '102' }]) {
    check(continuity, change)
    assert.equal(continuity.lost, null)
  }
})

for (const [what, change] of [
  ['beat', { beat: '6' }],
  ['witness', { beat: null }],
  ['epoch', { epoch: '2' }],
  ['transaction', { xid: '100' }],
] as const)
  test(`the same database with only an older ${what} has gone back in time`, async () => {
    const { continuity, events } = await seen()
    check(continuity, change)
    assert.match(continuity.lost ?? '', OUT_OF_TIME)
    check(continuity, {})
    assert.match(continuity.lost ?? '', OUT_OF_TIME, 'only an adoption ends it')
    check(continuity, { epoch: '4' })
    assert.equal(continuity.lost, null)
    assert.match(events[0] ?? '', OUT_OF_TIME)
    assert.equal(events[1], null)
  })

test('a beat that gets a number seen before reveals the loss, unless the database was adopted since it was sent', async () => {
  const { continuity } = await seen()
  const sent = continuity.mark
  continuity.sawBeat(9, sent)
  continuity.sawBeat(8, sent)
  assert.equal(continuity.lost, null, 'two beats may come back in any order')
  const { mark } = continuity
  check(continuity, { epoch: '4', beat: '2' })
  continuity.sawBeat(3, mark)
  assert.equal(continuity.lost, null)
  continuity.sawBeat(2, continuity.mark)
  assert.match(continuity.lost ?? '', OUT_OF_TIME)
})

test('progress seen during a database query does not count against its result', async () => {
  const { continuity } = await seen()
  const { mark } = continuity
  continuity.sawBeat(8, mark)
  continuity.sawTransaction('200')
  check(continuity, { beat: '7', xid: '150' }, mark)
  assert.equal(continuity.lost, null)
  check(continuity, { beat: '7', xid: '200' })
  assert.match(continuity.lost ?? '', OUT_OF_TIME)
})
