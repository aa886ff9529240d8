import assert from 'node:assert/strict'
import { test } from 'node:test'
import { poolTable, TestClock } from '@plat/core'
import { silentLog } from '@plat/process'
import { createMemoryJournal, type Journal } from '@plat/state'
import type { Notice } from '../notice.ts'
import { Deliverer, type Sent } from './courier.ts'
import { decodeOutboxEvent, Outbox, type OutboxEvent } from './outbox.ts'

const notice = (id: string, clock: TestClock): Notice => ({
  id,
  type: 'approval.created',
  at: new Date(clock.now()).toISOString(),
  approval: id,
  title: id,
  facts: [],
  // Ten agents take turns.
  data: { namespace: 'default', agent: id.at(-1) },
})

/** An outbox with one receiver, whose responses the test sets. */
async function setUp(journal?: Journal<OutboxEvent>, clock = new TestClock()) {
  const store = journal ?? createMemoryJournal<OutboxEvent>(() => clock.now())
  const faults: unknown[] = []
  const outbox = await Outbox.open({ journal: store, clock, onFault: (error) => faults.push(error) })
  const sent: string[] = []
  const answers = new Map<string, Sent>()
  const state: { answer: Sent } = { answer: 'sent' }
  const courier = new Deliverer({
    name: 'a',
    claim: async () => ({ async release() {} }),
    outbox,
    clock,
    ids: { random: (bytes) => new Uint8Array(bytes) },
    log: silentLog,
    async send({ id }) {
      sent.push(id)
      return answers.get(id) ?? state.answer
    },
  })
  courier.start()
  const put = async (...ids: string[]) => {
    for (const id of ids) {
      const one = notice(id, clock)
      if (await outbox.put(one, ['a'])) courier.offer(one)
    }
    await clock.advance(0)
  }
  const take = () => sent.splice(0)
  return { journal: store, clock, outbox, courier, put, take, state, answers, faults }
}

const away = (retryAfterMs: number | null = null): Sent => ({ kind: 'away', why: 'away', retryAfterMs })
const refused: Sent = { kind: 'refused', why: 'no', retryAfterMs: null }

test('each notice is delivered once, in order; while the receiver is away all wait, with backoff', async () => {
  const { put, take, state, clock } = await setUp()
  await put('one', 'two')
  assert.deepEqual(take(), ['one', 'two'])
  state.answer = away()
  await put('three', 'four')
  assert.deepEqual(take(), ['three'])
  for (const ms of [1_000, 2_000, 4_000, 8_000]) {
    await clock.advance(ms - 1)
    assert.deepEqual(take(), [])
    await clock.advance(1)
    assert.deepEqual(take(), ['three'])
  }
  state.answer = 'sent'
  await clock.advance(16_000)
  assert.deepEqual(take(), ['three', 'four'])
})

test('an approval is delivered before the alerts that wait, however many there are', async () => {
  const { outbox, courier, take, state, clock } = await setUp()
  state.answer = away()
  const [kinds, sources] = poolTable.notifications.shares
  const alert = (id: string, budget: number): Notice => ({
    ...notice(id, clock),
    type: 'budget.threshold',
    approval: null,
    data: { budget },
  })
  let lost = 0
  for (let n = 0; n < kinds.max + 1; n++) {
    const one = alert(`alert ${n}`, Math.floor(n / sources.max))
    if (await outbox.put(one, ['a'])) courier.offer(one)
    else lost++
  }
  assert.equal(lost, 1)
  const approval = notice('approval', clock)
  assert.equal(await outbox.put(approval, ['a']), true)
  courier.offer(approval)
  await clock.advance(0)
  take()
  state.answer = 'sent'
  await clock.advance(1_000)
  assert.deepEqual(take().slice(0, 2), ['approval', 'alert 0'])
})

test('Retry-After is honored, up to five minutes', async () => {
  const { put, take, state, clock } = await setUp()
  state.answer = away(60_000)
  await put('one')
  await clock.advance(59_999)
  assert.deepEqual(take(), ['one'])
  state.answer = away(24 * 3_600_000)
  await clock.advance(1)
  await clock.advance(299_999)
  assert.deepEqual(take(), ['one'])
  await clock.advance(1)
  assert.deepEqual(take(), ['one'])
})

test('a refused notice lets the next ones pass, and is dropped after eight refusals', async () => {
  const { put, take, answers, clock, outbox } = await setUp()
  answers.set('bad', refused)
  await put('bad', 'good')
  assert.deepEqual(take(), ['bad'])
  await clock.advance(1_000)
  assert.deepEqual(take(), ['bad'])
  await clock.advance(2_000)
  assert.deepEqual(take(), ['good', 'bad'])
  await clock.advance(3_600_000)
  assert.equal(take().length, 5)
  assert.deepEqual(outbox.waitingFor('a'), [])
  assert.ok(outbox.has('bad'))
})

test('a notice that is not delivered for a day is dropped', async () => {
  const { put, state, clock, outbox } = await setUp()
  state.answer = away()
  await put('one')
  await clock.advance(24 * 3_600_000)
  assert.equal(outbox.waitingFor('a').length, 1)
  await clock.advance(300_000)
  assert.deepEqual(outbox.waitingFor('a'), [])
})

test('a restart delivers waiting notices and remembers delivered ones', async () => {
  // Shows D3.approvals.notifyOutboxPath.
  const first = await setUp()
  await first.put('told')
  first.state.answer = away()
  await first.put('waits')
  first.courier.close()
  first.outbox.close()
  const second = await setUp(first.journal, first.clock)
  await first.clock.advance(0)
  assert.deepEqual(second.take(), ['waits'])
  assert.ok(second.outbox.has('told') && second.outbox.has('waits'))
  assert.equal(second.outbox.beganAt, first.outbox.beganAt)
})

test('a process killed between delivery and journal entry delivers once more, with the same id', async () => {
  const first = await setUp()
  const { journal } = first
  const append = journal.append.bind(journal)
  journal.append = (key, events, onlyIf) =>
    events[0]?.t === 'delivered' ? Promise.reject(new Error('killed')) : append(key, events, onlyIf)
  await first.put('one')
  assert.deepEqual(first.take(), ['one'])
  assert.equal(first.faults.length, 1)
  journal.append = append
  const second = await setUp(journal, first.clock)
  await first.clock.advance(0)
  assert.deepEqual(second.take(), ['one'])
})

test('the outbox has a limit, forgets after two days, and a long journal is compacted', async () => {
  const { put, state, clock, outbox, journal } = await setUp()
  for (let round = 0; round < 3; round++) {
    state.answer = 'sent'
    await put(...Array.from({ length: 4_000 }, (_, n) => `${round} ${n}`))
  }
  state.answer = away()
  await put('waits')
  await clock.advance(60_000)
  assert.equal((await Array.fromAsync(journal.read(0))).length, 12_002)
  await clock.advance(47 * 3_600_000)
  assert.ok(outbox.has('2 3999'))
  await clock.advance(2 * 3_600_000)
  assert.ok(!outbox.has('2 3999'))
  for (let n = 0; n < poolTable.notifications.shares[1].max; n++) {
    const greedy = { ...notice(`more ${n}`, clock), data: { namespace: 'default', agent: 'greedy' } }
    await outbox.put(greedy, ['b'])
  }
  const tooMany = { ...notice('too many', clock), data: { namespace: 'default', agent: 'greedy' } }
  assert.equal(await outbox.put(tooMany, ['b']), false)
  assert.equal(await outbox.put(notice('of another agent', clock), ['b']), true)
  assert.throws(() => decodeOutboxEvent({ t: 'blessed' }))
})
