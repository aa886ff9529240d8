import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { usePostgres } from '@plat/testkit/postgres/server'
import { until } from '@plat/testkit/until'
import { batchesSetup, createdBatch, line, uploaded } from '../../../testing/batches.ts'
import { outcomesOf } from '../testing.ts'

const postgres = usePostgres()
const LINES = ['a', 'b', 'c', 'd'].map((id) => line(id))
/** Micro-units: above the bound of one batch of these requests, below that of two. */
const CAP = { sessionBudgetUSD: 0.001 }

test('the most that a batch can cost is held until its results are read, also after a restart', async (t) => {
  const { provider, gateway, auditPath } = await batchesSetup(t)
  const first = await gateway(CAP)
  const batch = await createdBatch(first.openai(), LINES)
  await assert.rejects(createdBatch(first.openai(), LINES), /429 .*left of the session's budget/)
  await first.drain()
  const second = await gateway(CAP)
  await assert.rejects(createdBatch(second.openai(), LINES), /429 .*left of the session's budget/)
  provider.finish(batch.id)
  const output = (await second.openai().batches.retrieve(batch.id)).output_file_id ?? assert.fail()
  await assert.rejects(createdBatch(second.openai(), LINES), /429 .*left of the session's budget/)
  await (await second.openai().files.content(output)).text()
  await until(async () => (await outcomesOf(auditPath)).some(({ op }) => op === 'usage.batch'), 'the settlement')
  const settled = (await outcomesOf(auditPath)).find(({ op }) => op === 'usage.batch')
  assert.equal(settled?.costMicros, 100)
  assert.deepEqual(Object.values(settled?.settled), [100])
  const next = await createdBatch(second.openai(), LINES)
  await second.drain()
  // After another restart the settled amount is counted once, and the hold is there again.
  const third = await gateway(CAP)
  await assert.rejects(createdBatch(third.openai(), LINES), /429 .*left of the session's budget/)
  await third.openai().batches.cancel(next.id)
  await createdBatch(third.openai(), LINES)
})

test('a batch that no prices or budget can bound is refused, and one with too few tokens left as well', async (t) => {
  const { provider, gateway } = await batchesSetup(t)
  const { openai } = await gateway(CAP)
  await assert.rejects(uploaded(openai(), [line('a', { model: 'unpriced' })]), /403 .*request 1: .*price/)
  const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
  const picture = { messages: [{ role: 'user', content: [image] }] }
  await assert.rejects(uploaded(openai(), [line('a', picture)]), /request 1: /)
  const before = provider.calls.length
  // Each request alone is within the budget.
  const many = Array.from({ length: 12 }, (_, at) => line(`r${at}`))
  await assert.rejects(createdBatch(openai(), many), /429 .*left of the session's budget/)
  assert.ok(!provider.calls.slice(before).some(({ path }) => path === '/v1/batches'))
})

test('two gateways with one database hold and settle a batch once', async () => {
  const { provider, dir, gateway } = await batchesSetup({ after: (end) => postgres.beforeClose(end) })
  await writeFile(join(dir, 'dsn'), postgres.dsn)
  const stateBackend = { type: 'postgres', dsnFile: join(dir, 'dsn'), maxConns: 2 }
  const at = (name: string) => gateway({ ...CAP, stateBackend, auditPath: join(dir, `${name}.jsonl`) })
  const [one, other] = [await at('one'), await at('other')]
  const batch = await createdBatch(one.openai(), LINES)
  await assert.rejects(createdBatch(other.openai(), LINES), /429 .*left of the session's budget/)
  await one.drain()
  provider.finish(batch.id)
  await until(async () => (await other.openai().batches.list()).data.length === 1, 'the batch at the other gateway')
  const output = (await other.openai().batches.retrieve(batch.id)).output_file_id ?? assert.fail()
  await until(async () => {
    await (await other.openai().files.content(output)).text()
    return (await outcomesOf(join(dir, 'other.jsonl'))).some(({ op }) => op === 'usage.batch')
  }, 'the settlement')
  const restarted = await at('one')
  await (await restarted.openai().files.content(output)).text()
  assert.ok(!(await outcomesOf(join(dir, 'one.jsonl'))).some(({ op }) => op === 'usage.batch'))
  await createdBatch(restarted.openai(), LINES)
  await assert.rejects(createdBatch(other.openai(), LINES), /429 .*left of the session's budget/)
})
