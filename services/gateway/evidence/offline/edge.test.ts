import assert from 'node:assert/strict'
import { appendFileSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Dialer } from '@plat/http'
import { ephemeralSigner } from '@plat/keys'
import { NO_RECORD, readSegment, sealIdOf, verifyLedger } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { until } from '@plat/testkit/until'
import { staticSource } from '@plat/tokens'
import { configWith } from '../../testing/configured.ts'
import { Forwarder } from './forwarder.ts'
import { Spool } from './spool.ts'
import { edgeKey, hubKey, setUpSpool } from './testing/spooled.ts'

/** Concatenates the lines of all segments of a spool. */
function held(spoolDir: string): string {
  const names = readdirSync(spoolDir).filter((name) => name.endsWith('.segment'))
  return names.toSorted().reduce((text, name) => {
    const segment = readSegment(readFileSync(join(spoolDir, name)))
    assert.ok(typeof segment !== 'string' && segment.statement.isSignedBy(staticSource([edgeKey.publicKey])))
    return text + segment.lines.toString()
  }, '')
}

test('a segment is sealed when it is full, or its first record has waited for the interval, and not before', async (t) => {
  // Shows D3.offline.sealIntervalSeconds, D3.offline.segmentMaxRecords.
  const { clock, write, open, segments, spoolDir, lines } = await setUpSpool(t)
  const { spool, sealAll } = await open()
  await write(8)
  await sealAll()
  assert.deepEqual(segments(), [])
  await write(1)
  await sealAll()
  assert.deepEqual(segments(), ['north-0000000000000000.segment'])
  assert.equal(spool.sealed.seq, 9)
  await write(25)
  await sealAll()
  assert.equal(spool.sealed.seq, 29)
  await clock.advance(59_999)
  await sealAll()
  assert.equal(spool.sealed.seq, 29)
  await clock.advance(1)
  await sealAll()
  assert.equal(spool.sealed.seq, 34)
  assert.equal(
    held(spoolDir),
    lines()
      .map((line) => `${line}\n`)
      .join(''),
  )
})

test('a full spool stays within its bytes, keeps its segments, and continues when there is room', async (t) => {
  // Shows D3.offline.spoolMaxBytes.
  const { write, open, receipt, spoolDir } = await setUpSpool(t)
  const { spool, sealer, sealAll, contact } = await open({ maxBytes: 30_000 })
  await write(100)
  await sealAll()
  const { seq } = spool.sealed
  assert.ok(sealer.full && seq > 9 && seq < 60, String(seq))
  assert.ok(readdirSync(spoolDir).reduce((sum, name) => sum + statSync(join(spoolDir, name)).size, 0) <= 30_000)
  await sealAll()
  assert.equal(spool.sealed.seq, seq)
  assert.equal(await contact.accept(await receipt(seq), null), null)
  assert.equal(spool.bytes, 0)
  await sealAll()
  assert.ok(spool.sealed.seq > seq)
})

test('dropOldestForwarded drops only forwarded segments, the oldest first', async (t) => {
  // Shows D3.offline.fullPolicy.dropOldestForwarded.
  // Shows D3.offline.fullPolicy.
  const { write, open, segments } = await setUpSpool(t)
  const { spool, sealer, sealAll } = await open({ maxBytes: 30_000, dropsForwarded: true })
  await write(100)
  await sealAll()
  const { seq } = spool.sealed
  assert.ok(sealer.full, 'nothing was forwarded: nothing is dropped')
  await spool.forwarded(9)
  await sealAll()
  assert.ok(spool.sealed.seq > seq && sealer.full)
  assert.ok(
    !segments().includes('north-0000000000000000.segment') && segments().includes('north-0000000000000010.segment'),
  )
  assert.equal(spool.progress.acked, -1)
  // A restart remembers dropped segments.
  const again = await open({ maxBytes: 30_000, dropsForwarded: true })
  assert.equal(again.spool.sealed.seq, spool.sealed.seq)
})

test('the spool follows the ledger: torn, missing and foreign segments are sealed again', async (t) => {
  const { write, open, receipt, segments, spoolDir, lines } = await setUpSpool(t)
  const first = await open()
  await write(49)
  await first.sealAll()
  assert.equal(await first.contact.accept(await receipt(9), null), null)
  const [second = '', third = ''] = segments().toSorted()
  appendFileSync(join(spoolDir, third), 'more')
  appendFileSync(join(spoolDir, `${second}.tmp`), 'half')
  const { spool, sealAll } = await open()
  assert.deepEqual([spool.sealed.seq, segments()], [19, [second]])
  await sealAll()
  const rest = `${lines().slice(10).join('\n')}\n`
  assert.equal(held(spoolDir), rest)
  const [gone] = spool.waiting()
  assert.ok(gone !== undefined)
  rmSync(gone.path)
  assert.equal(await spool.read(gone), null)
  await sealAll()
  assert.equal(held(spoolDir), rest)
  await assert.rejects(
    Spool.open({ dir: spoolDir, edge: 'north', ledgerId: 'another', maxBytes: 1e9, log: silentLog }),
    /is the spool of ledger .*, and this one is another: move it away/,
  )
})

test('a receipt is valid only for this ledger and seal, for a known record, from a known collector', async (t) => {
  // Shows D3.offline.collectorKeyFiles.
  const { clock, write, open, receipt, segments } = await setUpSpool(t)
  const { spool, sealAll, contact } = await open()
  await write(49)
  await sealAll()
  const silent = contact.silence
  const wrong: readonly (readonly [string | Promise<string>, string | null, RegExp])[] = [
    ['no receipt', null, /not a receipt/],
    [receipt(19, { edge: 'south' }), null, /another ledger/],
    [receipt(19, { ledgerId: 'other' }), null, /another ledger/],
    [receipt(19, {}, ephemeralSigner()), null, /not signed by a key of offline.collectorKeyFiles/],
    [receipt(19, { head: 'a'.repeat(64) }), null, /the collector has another record 19/],
    [receipt(19, { seal: 'old' }), 'new', /answers another seal/],
    [receipt(19, { upTo: 500 }), null, /another record 500/],
  ]
  for (const [text, sealId, why] of wrong) assert.match((await contact.accept(await text, sealId)) ?? '', why)
  assert.deepEqual([spool.progress.acked, segments().length, contact.silence], [-1, 5, silent])
  assert.equal(await contact.accept(await receipt(19), null), null)
  assert.deepEqual([spool.progress.acked, segments().length, contact.silence], [19, 3, 0])
  // An old receipt that arrives late changes nothing; its age still applies.
  const late = await receipt(9)
  await clock.advance(5000)
  assert.equal(await contact.accept(late, null), null)
  assert.deepEqual([spool.progress.acked, segments().length, contact.silence], [19, 3, 5000])
  // A restart does not change this.
  await clock.advance(1000)
  assert.equal((await open()).contact.silence, 6000)
})

test('of two concurrent receipts the one for more records applies', async (t) => {
  const { write, open, receipt } = await setUpSpool(t)
  const { spool, sealAll, contact } = await open()
  await write(29)
  await sealAll()
  const [more, less] = [await receipt(19), await receipt(9)]
  assert.deepEqual(await Promise.all([contact.accept(more, null), contact.accept(less, null)]), [null, null])
  assert.equal(spool.progress.acked, 19)
})

test('a renamed edge seals its ledger again under the new name', async (t) => {
  const { write, open, segments, spoolDir, lines } = await setUpSpool(t)
  await write(29)
  await (await open({ edge: 'north-2' })).sealAll()
  assert.equal(segments().length, 3)
  const { spool, sealAll } = await open({ edge: 'north' })
  assert.deepEqual([spool.sealed.seq, segments()], [NO_RECORD.seq, []])
  await sealAll()
  assert.equal(held(spoolDir), `${lines().join('\n')}\n`)
})

/** A collector with records up to `upTo` that accepts segments, and can be unreachable. */
function collector({ ledgerId }: { ledgerId: string }, receipt: Awaited<ReturnType<typeof setUpSpool>>['receipt']) {
  const state = { upTo: -1, there: true, counts: true, requests: 0 }
  const got: [from: number, to: number][] = []
  const fetchBytes: Dialer['fetchBytes'] = async (url, _purpose, { body, headers, jurisdiction }) => {
    state.requests++
    if (!state.there) throw new Error('unreachable')
    assert.equal(String(url), 'https://hub.example/v1/audit/segments')
    assert.equal(headers?.['content-type'], 'application/vnd.plat.segment')
    assert.equal(jurisdiction, 'DE')
    const bytes = Buffer.from(body ?? '')
    const segment = readSegment(bytes)
    assert.ok(typeof segment !== 'string')
    const { from, to } = segment.seal
    if (to >= from) {
      if (from > state.upTo + 1) return { status: 409, headers: {}, bytes: Buffer.from('{"message":"gap"}') }
      got.push([from, to])
      state.upTo = Math.max(state.upTo, to)
    }
    const seal = sealIdOf(bytes.toString('latin1', 0, bytes.indexOf('\n')))
    const text = await receipt(state.upTo, { seal, ledgerId }, state.counts ? hubKey : edgeKey)
    return { status: 200, headers: {}, bytes: Buffer.from(JSON.stringify({ receipt: text })) }
  }
  return { state, got, fetchBytes }
}

async function forwarding(t: TestContext) {
  const own = await setUpSpool(t)
  const opened = await own.open()
  const { state, got, fetchBytes } = collector(own, own.receipt)
  const seconds = { intervalSeconds: 10, maxBackoffSeconds: 300, timeoutSeconds: 30 }
  let failures = 0
  const forwarder = new Forwarder({
    config: { url: 'https://hub.example/', tokenFile: '', caFile: '', jurisdiction: 'DE', ...seconds },
    edge: 'north',
    ledgerId: own.ledgerId,
    spool: opened.spool,
    contact: opened.contact,
    signer: async () => edgeKey,
    dialer: { fetchBytes },
    clock: own.clock,
    ids: { uuid: () => '', random: () => new Uint8Array([0]) },
    log: silentLog,
    onError: () => failures++,
  })
  t.after(() => forwarder.close())
  return { ...own, ...opened, state, got, forwarder, failures: () => failures }
}

test('an edge queries the position of the collector, sends missing segments in order, and repeats each interval', async (t) => {
  // Shows D3.offline.forward.intervalSeconds.
  const { clock, write, sealAll, spool, state, got, forwarder } = await forwarding(t)
  await write(29)
  await sealAll()
  forwarder.start()
  await until(() => spool.progress.acked === 29, 'the receipts')
  await until(() => spool.bytes === 0, 'room')
  assert.deepEqual(
    [got, state.requests],
    [
      [
        [0, 9],
        [10, 19],
        [20, 29],
      ],
      4,
    ],
  )
  await until(
    () => state.requests === 5,
    'the next query',
    () => clock.advance(1000),
  )
})

test('a collector that lost segments gets them again, from the ledger', async (t) => {
  const { clock, write, sealAll, spool, state, got, forwarder } = await forwarding(t)
  await write(39)
  await sealAll()
  forwarder.start()
  await until(() => spool.progress.acked === 39, 'the receipts')
  state.upTo = 14
  await until(
    () => spool.progress.acked === 14,
    'the loss to be seen',
    () => clock.advance(10_000),
  )
  const turn = async () => {
    await clock.advance(10_000)
    await sealAll()
  }
  await until(() => spool.progress.acked === 39, 'the receipts again', turn)
  assert.deepEqual(got.slice(4), [
    [15, 24],
    [25, 34],
    [35, 39],
  ])
})

test('backoff doubles up to its maximum while the collector is unreachable, and a success resets it', async (t) => {
  // Shows D3.offline.forward.maxBackoffSeconds.
  const { clock, state, forwarder, failures } = await forwarding(t)
  state.there = false
  const started = clock.monotonic()
  const at: number[] = []
  forwarder.start()
  while (at.length < 7) {
    await until(
      () => failures() > at.length,
      'a failure',
      () => clock.advance(5000),
    )
    at.push(Math.round((clock.monotonic() - started) / 1000))
  }
  const pauses = at.slice(1).map((second, index) => second - (at[index] ?? 0))
  for (const [index, expected] of [20, 40, 80, 160, 300, 300].entries()) {
    // The test advances the clock by five seconds, and once more during a round.
    assert.ok(Math.abs((pauses[index] ?? 0) - expected) <= 10, `${pauses}`)
  }
})

test('segments accepted without a valid receipt are neither sent again nor freed', async (t) => {
  const { clock, write, sealAll, spool, state, got, forwarder, failures } = await forwarding(t)
  state.counts = false
  await write(29)
  await sealAll()
  forwarder.start()
  await until(() => failures() === 1, 'the end of the round')
  assert.deepEqual([got.length, spool.progress.forwarded, spool.progress.acked, spool.waiting().length], [3, 29, -1, 0])
  state.counts = true
  await until(
    () => spool.progress.acked === 29,
    'a valid receipt',
    () => clock.advance(1000),
  )
  assert.equal(got.length, 3)
  await until(() => spool.bytes === 0, 'room')
})

test('the sealed segments form a ledger that verifies', async (t) => {
  const { path, write, open, spoolDir } = await setUpSpool(t)
  const { sealAll } = await open()
  await write(99)
  await sealAll()
  assert.equal((await verifyLedger(path, { strict: true })).exitCode, 0)
  assert.equal(held(spoolDir), readFileSync(path, 'utf8'))
})

test('without configuration a spool has room for 1 GiB, and a segment holds 1000 records', async (t) => {
  // Shows D3.limit.offlineSpool, D3.limit.segmentRecords.
  const { offline } = configWith({})
  const { write, open, segments } = await setUpSpool(t)
  const { spool, sealAll } = await open({ maxBytes: offline.spoolMaxBytes, maxRecords: offline.segmentMaxRecords })
  assert.equal(spool.room, 1024 * 1024 * 1024)
  await write(998)
  await sealAll()
  assert.deepEqual(segments(), [], 'with the opening record 999')
  await write(1)
  await sealAll()
  assert.equal(spool.sealed.seq, 999)
})
