import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { systemClock, systemIds } from '@plat/core'
import { openLedger, type Rec } from '@plat/ledger'
import { costs } from './costs.ts'

let folder = ''
let path = ''
let printed: string[] = []
const output = { out: (text: string) => void printed.push(text), err: (text: string) => void printed.push(text) }

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  path = join(folder, 'audit.jsonl')
  printed = []
})
afterEach(() => rmSync(folder, { recursive: true }))

async function write(...records: readonly Rec[]): Promise<void> {
  const ledger = await openLedger({ path, tenant: '', replica: 'r', clock: systemClock, ids: systemIds(systemClock) })
  const appended = records.map((record) => ledger.append(record))
  await ledger.flush()
  await Promise.all(appended)
  await ledger.close()
}

async function rows() {
  printed = []
  assert.equal(await costs({ path, output: 'json' }, output), 0)
  return JSON.parse(printed.join('\n'))
}

const who = (session: string) => ({ namespace: 'default', agent: 'assistant', session })
const KEY = 'usd/session/default/assistant/a'
const holds = [{ key: KEY, window: 'life', cap: 1000, amount: 70, unit: 'micros' }]
const model = { ...who('a'), server: 'llm/default.assistant', tool: 'gpt' }
const spent = (costMicros: number, prompt: number, completion: number) => ({
  costMicros,
  currency: 'EUR',
  usage: { prompt, completion, cachedRead: 0, cachedWrite: 0, reasoning: 0 },
})

test('costs are added up by session and route, dearest first, and calls under way are held', async () => {
  await write(
    { kind: 'intent', call: '1', ...model, holds },
    { kind: 'outcome', call: '1', ...model, ...spent(30, 10, 4), settled: { [KEY]: 30 } },
    { kind: 'outcome', call: '2', ...model, ...spent(5, 2, 1) },
    { kind: 'outcome', call: '3', ...who('b'), server: 'search', tool: 'web', costMicros: 2000, currency: 'EUR' },
    { kind: 'outcome', call: '4', ...who('b'), server: 'notes', tool: 'add_note', costMicros: 0 },
    { kind: 'intent', call: '5', ...model, holds },
  )
  // The writer is gone, so opening the ledger again would close call 5; reading alone must not.
  const one = { session: 'default/assistant/a', route: 'default.assistant', calls: 2, promptTokens: 12 }
  const other = { session: 'default/assistant/b', route: 'search/web', calls: 1, promptTokens: 0 }
  assert.deepEqual(await rows(), [
    { ...other, completionTokens: 0, costMicros: 2000, heldMicros: 0, currency: 'EUR' },
    { ...one, completionTokens: 5, costMicros: 35, heldMicros: 70, currency: 'EUR' },
  ])
  printed = []
  await costs({ path, output: 'table' }, output)
  const table = printed.join('\n')
  assert.match(table, /search\/web +1 +0 +0 +0\.002000 EUR +0\.000000 EUR/)
  assert.match(table, /total +3 +12 +5 +0\.002035 EUR +0\.000070 EUR/)
})

test('a call whose process died costs what it held', async () => {
  await write({ kind: 'intent', call: '1', ...model, holds })
  assert.equal((await rows())[0].heldMicros, 70)
  await write()
  const [row] = await rows()
  assert.deepEqual([row.costMicros, row.heldMicros, row.calls], [70, 0, 1])
})

test('a ledger without costs is reported as such, and for a missing one the error says what to do', async () => {
  await write({ kind: 'outcome', call: '1', ...who('a'), server: 'notes', costMicros: 0 })
  await costs({ path, output: 'table' }, output)
  assert.deepEqual(printed, ['nothing has cost anything yet'])
  assert.deepEqual(await rows(), [])
  await assert.rejects(costs({ path: join(folder, 'none'), output: 'table' }, output), /does not exist/)
})

test('estimates of energy and carbon are added up bound by bound, and shown only where there are any', async () => {
  const call = (id: string, energy?: object): Rec => ({
    kind: 'outcome',
    call: id,
    ...model,
    ...spent(30, 10, 4),
    ...energy,
  })
  await write(call('1'))
  assert.equal((await rows())[0].energy, undefined)
  await costs({ path, output: 'table' }, output)
  assert.doesNotMatch(printed.join('\n'), /ENERGY/)
  await write(
    call('2', {
      energy: { microWh: { max: 2_500_000, min: 1_000_000 }, microgCO2e: { max: 50, min: 10 }, table: 't' },
    }),
    call('3', { energy: { microWh: { max: 500_000, min: 500_000 }, table: 't' } }),
  )
  assert.deepEqual((await rows())[0].energy, {
    microWh: { min: 1_500_000, max: 3_000_000 },
    microgCO2e: { min: 10, max: 50 },
  })
  printed = []
  await costs({ path, output: 'table' }, output)
  assert.match(printed.join('\n'), /ENERGY \(WH\) +CO2E \(G\)/)
  assert.match(printed.join('\n'), /total .* 1\.500 - 3\.000 +0\.000 - 0\.000/)
})

test('a call without a price is unknown, and not zero', async () => {
  const usage = { prompt: 10, completion: 4 }
  await write(
    { kind: 'outcome', call: '1', ...model, ...spent(30, 10, 4), priceId: 'p' },
    { kind: 'outcome', call: '2', ...model, usage, costMicros: 0 },
    { kind: 'outcome', call: '3', ...who('b'), server: 'llm/other', tool: 'x', usage, costMicros: 0 },
  )
  const found = await rows()
  assert.deepEqual([found[0].unpricedCalls, found[1].unpricedCalls, found[1].calls], [1, 1, 1])
  printed = []
  await costs({ path, output: 'table' }, output)
  const table = printed.join('\n')
  assert.match(table, /default\.assistant +2 +20 +8 +0\.000030 EUR \+ unknown/)
  assert.match(table, /other +1 +10 +4 +unknown/)
  assert.match(table, /2 calls have no price: plat pricing update/)
})
