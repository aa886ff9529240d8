import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PostgresProxy } from '@plat/testkit/postgres/proxy'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import type { CopyOwner, ShippedChunk } from './tables/ledger-copies.ts'
import { Replicas } from './testing/replicas.ts'

const postgres = usePostgres()
const replicas = new Replicas(postgres)

const hashOf = (seq: number) => (seq < 0 ? '0' : String(seq % 10)).repeat(64)
let owners = 0
const newOwner = (more: Partial<CopyOwner> = {}): CopyOwner => ({
  ledgerId: `ledger-${++owners}`,
  tenant: '',
  replica: `gateway-${owners}`,
  path: '/var/lib/plat/audit.jsonl',
  writer: 'disk-1',
  ...more,
})

/** A chunk of the records `first` to `last`, of ten bytes each. */
function chunkOf(first: number, last: number, more: Partial<ShippedChunk> = {}): ShippedChunk {
  const [prev, hash, position, bytes] = [hashOf(first - 1), hashOf(last), first * 10, (last - first + 1) * 10]
  return { first, last, prev, hash, position, bytes, data: Buffer.from(`${first}-${last}`), entry: null, ...more }
}

test('chunks are appended only to the head that they continue, and read from a position on', async () => {
  const { ledgerCopies: copies } = await replicas.open()
  const owner = newOwner()
  assert.equal(await copies.claim(owner), null)
  assert.deepEqual(await copies.ship(owner, chunkOf(0, 4)), { seq: 4, hash: hashOf(4), isDone: true, isOthers: false })
  const gap = await copies.ship(owner, chunkOf(6, 7))
  assert.deepEqual([gap.isDone, gap.seq], [false, 4])
  const fork = await copies.ship(owner, chunkOf(5, 7, { prev: hashOf(9) }))
  assert.deepEqual([fork.isDone, fork.seq], [false, 4])
  assert.equal((await copies.ship(owner, chunkOf(5, 7))).isDone, true)
  assert.equal((await copies.ship(owner, chunkOf(8, 19))).isDone, true)
  const read = async (position: number, bytes: number) =>
    (await copies.chunks(owner.ledgerId, position, bytes)).map(({ first, data }) => `${first}:${data}`)
  assert.deepEqual(await read(0, 1000), ['0:0-4', '5:5-7', '8:8-19'])
  assert.deepEqual(await read(55, 1000), ['5:5-7', '8:8-19'])
  assert.deepEqual(await read(55, 40), ['5:5-7'])
  assert.deepEqual(await read(0, 1), ['0:0-4'])
  assert.deepEqual(await read(199, 1), ['8:8-19'])
  assert.deepEqual(await read(200, 1), [], 'after the last one')
  assert.equal(await copies.positionOf(owner.ledgerId, 6), 50)
  assert.equal(await copies.positionOf(owner.ledgerId, 20), null)
  const [copy] = (await copies.list()).filter(({ ledgerId }) => ledgerId === owner.ledgerId)
  assert.deepEqual([copy?.seq, copy?.hash, copy?.bytes, copy?.replica], [19, hashOf(19), 200, owner.replica])
})

test('a chunk whose response is lost is appended once', async () => {
  const proxy = new PostgresProxy(postgres)
  const { ledgerCopies: copies } = await replicas.open({ dsn: proxy.dsn })
  const owner = newOwner()
  await copies.claim(owner)
  proxy.loseResponses()
  const { isDone, seq } = await copies.ship(owner, chunkOf(0, 4))
  assert.deepEqual([isDone, seq], [true, 4])
  assert.equal((await copies.chunks(owner.ledgerId, 0, 1000)).length, 1)
})

test('a copy has one writer: another process claims it when that one has released it, or has not renewed', async () => {
  const { ledgerCopies: copies } = await replicas.open()
  const owner = newOwner()
  const other = { ...owner, writer: 'disk-2' }
  await copies.claim(owner)
  assert.equal(await copies.claim(owner), null, 'a process that starts again on its disk')
  assert.equal(await copies.claim(other), 'writer')
  const foreign = await copies.ship(other, chunkOf(0, 4))
  assert.deepEqual([foreign.isDone, foreign.isOthers, foreign.seq], [false, true, -1])
  await copies.release(owner)
  assert.equal(await copies.claim(other), null)
  const late = await copies.ship(owner, chunkOf(0, 4))
  assert.deepEqual([late.isDone, late.isOthers], [false, true])
  await postgres.rows(`UPDATE plat.ledger_copy SET until = now() WHERE ledger = $1`, [owner.ledgerId])
  await until(async () => (await copies.claim(owner)) === null, 'the end of the lease')
})

test('one name has one ledger of each tenant, and a ledger can be found by its name or under a new one', async () => {
  const { ledgerCopies: copies } = await replicas.open()
  const owner = newOwner()
  await copies.claim(newOwner({ replica: 'gateway-once' }))
  assert.equal(await copies.claim(newOwner({ replica: 'gateway-once' })), null, 'the copy before is empty')
  await copies.claim(owner)
  await copies.ship(owner, chunkOf(0, 4))
  const foreign = newOwner({ replica: owner.replica })
  assert.equal(await copies.claim(foreign), 'name')
  assert.equal(await copies.claim({ ...foreign, tenant: 'acme' }), null)
  assert.equal(await copies.claim({ ...owner, tenant: 'acme', replica: 'elsewhere' }), 'name')
  const found = async (ledgerId: string | null, replica: string) =>
    (await copies.ofLedger({ ...owner, ledgerId, replica })).map((copy) => copy.ledgerId)
  assert.deepEqual(await found(null, owner.replica), [owner.ledgerId])
  assert.deepEqual(await found(owner.ledgerId, 'renamed'), [owner.ledgerId])
  assert.deepEqual(await found(null, 'renamed'), [])
})

test('the chunks of a segment leave together, and its entry says so', async () => {
  const { ledgerCopies: copies } = await replicas.open()
  const owner = newOwner()
  await copies.claim(owner)
  const entry = (first: number, left: string | null) => JSON.stringify({ first, left })
  await copies.ship(owner, chunkOf(0, 4))
  await copies.ship(owner, chunkOf(5, 9, { entry: entry(0, null) }))
  await copies.ship(owner, chunkOf(10, 12))
  await copies.leave({ ...owner, writer: 'another' }, { first: 0, last: 9, entry: entry(0, 'today') })
  assert.equal((await copies.chunks(owner.ledgerId, 0, 1000)).length, 3, 'another process cannot remove them')
  await copies.leave(owner, { first: 0, last: 9, entry: entry(0, 'today') })
  assert.deepEqual(
    (await copies.chunks(owner.ledgerId, 0, 1000)).map(({ first }) => first),
    [10],
  )
  assert.deepEqual(await copies.segments(owner.ledgerId), [{ entry: entry(0, 'today'), hasLeft: true }])
  const left = chunkOf(13, 20, { data: null, entry: entry(13, 'before') })
  assert.equal((await copies.ship(owner, left)).isDone, true)
  assert.equal((await copies.list()).find(({ ledgerId }) => ledgerId === owner.ledgerId)?.seq, 20)
})
