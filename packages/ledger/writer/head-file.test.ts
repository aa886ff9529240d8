import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { ephemeralSigner } from '@plat/keys'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { openLedger, repairLedger, verifyLedger } from '../index.ts'

const signer = ephemeralSigner()

function setup() {
  const path = `${tempFolder()}/audit.jsonl`
  const clock = new TestClock()
  const options = { path, tenant: '', replica: 'r1', clock, ids: systemIds(clock) }
  const open = () => openLedger({ ...options, headSigner: async () => signer })
  const head = () => (existsSync(`${path}.head`) ? JSON.parse(readFileSync(`${path}.head`, 'utf8')) : { seq: -1 })
  const lines = () => readFileSync(path, 'utf8').split('\n').slice(0, -1)
  const cutTo = (count: number) => writeFileSync(path, `${lines().slice(0, count).join('\n')}\n`)
  return { path, clock, options, open, head, lines, cutTo }
}

async function append(ledger: Awaited<ReturnType<typeof openLedger>>, count: number): Promise<void> {
  for (let n = 0; n < count; n++) await ledger.append({ kind: 'admin', tool: `t${n}` })
}

test('a ledger that lost its last records does not start, and verification against its head reports truncation', async () => {
  const { path, open, head, lines, cutTo } = setup()
  const ledger = await open()
  await append(ledger, 5)
  await ledger.close()
  assert.equal(head().seq, 5)
  const whole = readFileSync(path)
  cutTo(5)
  const refusal =
    /audit\.jsonl ends at record 4, but record 5 was durable \(.*\.head\): .* Put the right one back; .* move .*\.head away/
  await assert.rejects(open(), refusal)
  assert.equal((await verifyLedger(path)).exitCode, 0)
  const found = await verifyLedger(path, { beside: true })
  assert.deepEqual([found.exitCode, found.verdict], [6, 'truncated'], found.message)
  writeFileSync(path, '')
  await assert.rejects(open(), /audit\.jsonl is empty, but record 5 was durable/)
  writeFileSync(path, whole)
  await (await open()).close()
  assert.equal(lines().length, 6)
})

test('a ledger with another history at its head does not start', async () => {
  const { path, options, open } = setup()
  const ledger = await open()
  await append(ledger, 3)
  await ledger.close()
  const other = `${tempFolder()}/audit.jsonl`
  const another = await openLedger({ ...options, path: other })
  await append(another, 9)
  await another.close()
  writeFileSync(path, readFileSync(other))
  await assert.rejects(open(), /does not hold record 3 as it was/)
  assert.equal((await verifyLedger(path, { beside: true })).exitCode, 5)
})

test('the head is stored at most a second after a commit, and never names a record that is not durable', async () => {
  const { clock, open, head, lines } = setup()
  const ledger = await open()
  await append(ledger, 3)
  await clock.advance(1000)
  await until(() => head().seq === 3, 'the head of four records')
  await append(ledger, 2)
  assert.equal(head().seq, 3)
  await clock.advance(1000)
  await until(() => head().seq === 5, 'the head of six records')
  assert.equal(head().hash, JSON.parse(lines()[5] ?? '').hash)
  await ledger.close()
})

test('a signed head proves the records up to it to holders of the key, and a forged one proves nothing', async () => {
  const { path, open, head } = setup()
  const ledger = await open()
  await append(ledger, 4)
  await ledger.close()
  const key = `${tempFolder()}/pub.json`
  writeFileSync(key, JSON.stringify({ keys: [signer.publicJwk] }))
  const found = await verifyLedger(path, { beside: true, key })
  assert.deepEqual([found.exitCode, found.unproven], [0, 0], found.message)
  const other = ephemeralSigner()
  writeFileSync(key, JSON.stringify({ keys: [other.publicJwk] }))
  assert.equal((await verifyLedger(path, { beside: true, key })).exitCode, 4)
  writeFileSync(`${path}.head`, JSON.stringify({ ...head(), seq: 3 }))
  await assert.rejects(open(), /is not the head of a ledger: put it back, or move it away/)
})

test('a repair that removes the record of the head sets the head aside', async () => {
  const { path, options, open, head } = setup()
  const ledger = await open()
  await append(ledger, 5)
  await ledger.close()
  const bytes = readFileSync(path)
  bytes[bytes.length - 20] = (bytes[bytes.length - 20] ?? 0) ^ 1
  writeFileSync(path, bytes)
  await assert.rejects(open(), /is damaged/)
  await repairLedger(options)
  assert.equal(JSON.parse(readFileSync(`${path}.head.damaged-5`, 'utf8')).seq, 5)
  assert.equal(head().seq, 5)
  await (await open()).close()
})

test('a head that cannot be stored is reported once, and the ledger continues', async () => {
  const { path, clock, options } = setup()
  const faults: string[] = []
  const store = {
    place: 'a store',
    read: async () => null,
    write: () => Promise.reject(new Error('the store is away')),
  }
  const ledger = await openLedger({ ...options, heads: [store], onHeadFault: (reason) => void faults.push(reason) })
  await append(ledger, 1)
  for (let second = 0; second < 3; second++) await clock.advance(1000)
  await ledger.close()
  assert.deepEqual(faults, ['the store is away'])
  assert.equal((await verifyLedger(path)).records, 2)
})
