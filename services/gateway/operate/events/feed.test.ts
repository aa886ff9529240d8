import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { type CallCount, EventFeed, type NumberedEvent } from './feed.ts'

function setUp() {
  const clock = new TestClock()
  let problems: string[] = []
  const feed = new EventFeed({ clock, ids: systemIds(clock), problems: () => problems })
  const breaks = (...names: string[]) => {
    problems = names
  }
  const reader = () => {
    const events: NumberedEvent[] = []
    const counts: Record<string, CallCount>[] = []
    let ended = 0
    const leave = feed.follow({
      event: (event) => void events.push(event),
      counts: (all) => void counts.push(Object.fromEntries(all)),
      end() {
        ended++
      },
    })
    return { events, counts, leave, ended: () => ended }
  }
  return { clock, feed, reader, breaks }
}

const happened = (n: number) => ({ type: 'approval.created', namespace: 'shop', data: { n } })
const refused = { kind: 'decision', action: 'deny', namespace: 'shop', agent: 'a', session: 's', code: 'policy_denied' }

test('nothing is collected while there is no reader', async () => {
  const { clock, feed, reader } = setUp()
  feed.add(happened(1))
  feed.see(refused)
  feed.sessionStarted({ namespace: 'shop', agent: 'a', session: 's' })
  assert.deepEqual([feed.isCollecting, feed.seq], [false, 0])
  const one = reader()
  feed.add(happened(2))
  assert.deepEqual([feed.isCollecting, one.events.length], [true, 1])
  one.leave()
  await clock.advance(60_000)
  assert.equal(feed.isCollecting, false)
  const before = feed.seq
  feed.add(happened(3))
  assert.equal(feed.seq, before)
})

test('a reader resumes where it left, and learns when it cannot', async () => {
  const { clock, feed, reader } = setUp()
  const one = reader()
  feed.add(happened(1))
  const [{ seq = 0 } = {}] = one.events
  one.leave()
  feed.add(happened(2))
  feed.add(happened(3))
  assert.deepEqual(
    feed.after(feed.instance, seq)?.map(({ data }) => data),
    [{ n: 2 }, { n: 3 }],
  )
  assert.deepEqual(feed.after(feed.instance, feed.seq), [])
  for (const [instance, at] of [
    ['another', seq],
    [feed.instance, feed.seq + 1],
  ] as const)
    assert.equal(feed.after(instance, at), null)
  for (let n = 0; n < 2_100; n++) feed.add(happened(n))
  assert.equal(feed.after(feed.instance, seq), null, 'the ring is too short')
  assert.equal(feed.after(feed.instance, feed.seq - 2_000)?.length, 2_000)
  const last = feed.seq
  await clock.advance(60_000)
  assert.equal(feed.after(feed.instance, last), null, 'nothing was collected meanwhile')
})

test('many refusals of one namespace displace no other events, and are counted', async () => {
  const { clock, feed, reader } = setUp()
  const { events, counts } = reader()
  for (let n = 0; n < 5_000; n++) feed.see(refused)
  feed.see({ ...refused, namespace: 'bank' })
  feed.see({ ...refused, namespace: 'bank', action: 'allow' })
  await clock.advance(1_000)
  const ofShop = events.filter(({ namespace }) => namespace === 'shop')
  assert.deepEqual([ofShop.length, events.length], [20, 21])
  assert.deepEqual(counts, [
    {
      shop: { calls: 5_000, denied: 5_000, suppressed: 4_980, events: 20 },
      bank: { calls: 2, denied: 1, suppressed: 0, events: 1 },
    },
  ])
  await clock.advance(1_000)
  assert.equal(counts.length, 1, 'a second without calls')
})

test('changes of health are events, and the end of the gateway ends readers', async () => {
  const { clock, feed, reader, breaks } = setUp()
  const { events, ended } = reader()
  breaks('audit ledger')
  await clock.advance(1_000)
  await clock.advance(1_000)
  breaks()
  await clock.advance(1_000)
  assert.deepEqual(
    events.map(({ type, data }) => [type, data]),
    [
      ['health.changed', { problems: ['audit ledger'] }],
      ['health.changed', { problems: [] }],
    ],
  )
  feed.close()
  assert.deepEqual([ended(), feed.isCollecting], [1, false])
})

test('long names and reasons of callers and servers are cut in events, which are retained', () => {
  const { feed, reader } = setUp()
  const { events } = reader()
  const long = '\u{1f600}'.repeat(500_000)
  feed.see({ ...refused, user: long, server: 'notes', tool: long, rule: 'r' })
  feed.add({ type: 'pin.drift', namespace: 'shop', data: { server: 'shop/notes', tool: long, digest: 'd' } })
  feed.add(happened(1))
  for (const { data, audit } of events) {
    for (const value of Object.values({ ...data, ...audit }))
      if (typeof value === 'string') assert.ok(value.length <= 256 && value.isWellFormed(), String(value.length))
  }
  const [denial, drift] = events
  assert.deepEqual([denial?.audit?.server, denial?.audit?.rule, drift?.data.digest], ['notes', 'r', 'd'])
  assert.match(String(denial?.audit?.tool), /…$/)
})
