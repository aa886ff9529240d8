import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { systemClock, systemIds, TestClock } from '@plat/core'
import { openLedger } from './index.ts'

const options = { tenant: '', replica: 'r1', clock: systemClock, ids: systemIds(systemClock) }
let folder = ''
let path = ''

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  path = join(folder, 'audit.jsonl')
})
afterEach(() => rmSync(folder, { recursive: true }))

/** Every record of the file, parsed. */
function records(): Record<string, unknown>[] {
  return readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).rec)
}

test('a new ledger begins with a genesis record that names ledger, tenant, replica and format', async () => {
  const ledger = await openLedger({ ...options, path })
  await ledger.close()
  const [genesis] = records()
  assert.equal(genesis?.kind, 'config')
  assert.equal(genesis?.format, 1)
  assert.equal(genesis?.tenant, '')
  assert.equal(genesis?.replica, 'r1')
  assert.match(String(genesis?.ledgerId), /^[0-9a-f-]{36}$/)
  assert.match(String(genesis?.createdAt), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
})

test('records are in the file when append resolves, and the chain continues after reopening', async () => {
  const ledger = await openLedger({ ...options, path })
  const first = await ledger.append({ kind: 'intent', call: 'c1' })
  assert.equal(first.seq, 1)
  assert.equal(records().length, 2)
  await ledger.append({ kind: 'outcome', call: 'c1', result: 'completed' })
  assert.equal(ledger.head().seq, 2)
  await ledger.close()
  const again = await openLedger({ ...options, path })
  assert.equal((await again.append({ kind: 'admin' })).seq, 3)
  await again.close()
})

test('each waiter is notified once, when its record is durable or has failed for good', async () => {
  const ledger = await openLedger({ ...options, path })
  const entered = (kind: 'admin' | 'outcome') =>
    new Promise<string>((tell) =>
      ledger.enter(
        { kind },
        { durable: ({ seq }) => tell(`${seq} of ${records().length}`), failed: (error) => tell(String(error)) },
      ),
    )
  assert.equal(await entered('admin'), '1 of 2')
  assert.equal(await entered('outcome'), '2 of 3')
  await ledger.close()
  assert.match(await entered('admin'), /audit\.jsonl is closed$/)
})

test('an intent without an outcome is closed as unknown, with its whole hold spent', async () => {
  const ledger = await openLedger({ ...options, path })
  const holds = [{ key: 'usd/session/a', window: 'life', cap: 100, amount: 40, unit: 'micros' }]
  await ledger.append({
    kind: 'intent',
    call: 'c1',
    agent: 'assistant',
    tool: 't',
    op: 'mcp.call',
    facts: { groups: ['g'] },
    holds,
  })
  await ledger.append({ kind: 'intent', call: 'c2' })
  await ledger.append({ kind: 'outcome', call: 'c2', result: 'completed' })
  await ledger.close()
  await (await openLedger({ ...options, path })).close()
  const { at, replica, tenant, reason, ...rest } = records().at(-1) ?? {}
  assert.deepEqual(rest, {
    kind: 'outcome',
    call: 'c1',
    agent: 'assistant',
    tool: 't',
    op: 'mcp.call',
    result: 'unknown',
    settled: { 'usd/session/a': 40 },
  })
  assert.equal(records().length, 5)
  await (await openLedger({ ...options, path })).close()
  assert.equal(records().length, 5)
})

test('a second opener is refused in one line that names the lock', async () => {
  const ledger = await openLedger({ ...options, path })
  await assert.rejects(
    openLedger({ ...options, path }),
    /audit\.jsonl is in use by another process .*audit\.jsonl\.lock/,
  )
  await ledger.close()
})

test('a torn tail is kept beside the ledger and recorded; the records before it stay', async () => {
  const ledger = await openLedger({ ...options, path })
  await ledger.append({ kind: 'admin' })
  await ledger.close()
  const whole = readFileSync(path)
  writeFileSync(path, Buffer.concat([whole, Buffer.from('{"hash":"12')]))
  await (await openLedger({ ...options, path })).close()
  assert.equal(readFileSync(`${path}.torn-2`, 'utf8'), '{"hash":"12')
  const { at, replica, tenant, ...rest } = records().at(-1) ?? {}
  assert.equal(rest.kind, 'recovered')
  assert.equal(rest.bytes, 11)
  assert.equal(rest.file, 'audit.jsonl.torn-2')
})

test('a last line that only lacks its LF is complete', async () => {
  const ledger = await openLedger({ ...options, path })
  await ledger.append({ kind: 'admin' })
  await ledger.close()
  const whole = readFileSync(path)
  writeFileSync(path, whole.subarray(0, -1))
  await (await openLedger({ ...options, path })).close()
  assert.deepEqual(readFileSync(path), whole)
})

test('damage inside is refused, naming line, record, byte and the remedy', async () => {
  const ledger = await openLedger({ ...options, path })
  await ledger.append({ kind: 'admin' })
  await ledger.close()
  const bytes = readFileSync(path)
  const line = bytes.indexOf(0x0a) + 1
  bytes[line + 200] = (bytes[line + 200] ?? 0) ^ 1
  writeFileSync(path, bytes)
  const pattern = new RegExp(`damaged at line 2 \\(record 1, byte ${line}\\): .*plat audit repair`)
  await assert.rejects(openLedger({ ...options, path }), pattern)
})

test('lost calls are closed at start without waiting for any timer', async () => {
  const ledger = await openLedger({ ...options, path })
  await ledger.append({ kind: 'intent', call: 'c1' })
  await ledger.close()
  // A clock that does not advance: a lingering outcome would never be committed.
  const again = await openLedger({ ...options, clock: new TestClock(), path })
  assert.equal(records().at(-1)?.result, 'unknown')
  await again.close()
})
