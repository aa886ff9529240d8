import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BATCH_TOKENS } from '@plat/testkit/batches-server'
import { until } from '@plat/testkit/until'
import { batchesSetup, createdBatch, line, sub, uploaded } from '../../../testing/batches.ts'
import { outcomesOf } from '../testing.ts'

test("a batch of OpenAI's API is created, listed, read and cancelled by its agent and user, in any session", async (t) => {
  const { provider, gateway, auditPath } = await batchesSetup(t)
  const { openai } = await gateway()
  const batch = await createdBatch(openai(), [line('a'), line('b')])
  assert.equal(batch.status, 'in_progress')
  const later = openai(sub('assistant', 'later'))
  assert.equal((await later.batches.retrieve(batch.id)).id, batch.id)
  assert.deepEqual(
    (await openai({}, '/llm/v1').batches.list()).data.map(({ id }) => id),
    [batch.id],
  )
  provider.finish(batch.id)
  const ended = await later.batches.retrieve(batch.id)
  const output = ended.output_file_id ?? assert.fail()
  const results = (await (await later.files.content(output)).text()).trim().split('\n')
  assert.deepEqual(
    results.map((one) => JSON.parse(one).custom_id),
    ['a', 'b'],
  )
  const second = await createdBatch(openai(), [line('c')])
  assert.equal((await openai().batches.cancel(second.id)).status, 'cancelled')
  await until(async () => (await outcomesOf(auditPath)).some(({ op }) => op === 'usage.batch'), 'the settlement')
  const outcomes = await outcomesOf(auditPath)
  const created = outcomes.find(({ op, method }) => op === 'model.batch' && method === 'batches')
  assert.deepEqual([created?.batch.id, created?.batch.requests, created?.batch.sha256.length], [batch.id, 2, 64])
  const settled = outcomes.filter(({ op }) => op === 'usage.batch')
  assert.deepEqual(settled[0]?.batch, created?.batch)
  // 10 + 2 × 20 micro-units for each request, half of it in a batch.
  assert.deepEqual([settled[0]?.costMicros, settled[0]?.usage.completion], [50, 2 * BATCH_TOKENS.output])
})

test("a batch of Anthropic's API is created, read, and its results are counted once", async (t) => {
  const { provider, gateway, auditPath } = await batchesSetup(t)
  const { claude } = await gateway({}, { route: { provider: 'anthropic' } })
  const params = { model: 'm', max_tokens: 50, messages: [{ role: 'user' as const, content: 'hi' }] }
  const { id } = await claude().messages.batches.create({
    requests: ['a', 'b'].map((custom_id) => ({ custom_id, params })),
  })
  assert.equal((await claude().messages.batches.retrieve(id)).processing_status, 'in_progress')
  assert.deepEqual(
    (await claude().messages.batches.list()).data.map((one) => one.id),
    [id],
  )
  await assert.rejects(claude(sub('intruder', 's1')).messages.batches.retrieve(id), /404 .*no such batch/)
  provider.finish(id)
  // The client reads the results at the address in the batch, which must not be the provider's.
  for (let turn = 0; turn < 2; turn++) {
    const results = await resultsOf(claude(), id)
    assert.deepEqual(
      results.map((one) => one.custom_id),
      ['a', 'b'],
    )
  }
  await until(async () => (await outcomesOf(auditPath)).some(({ op }) => op === 'usage.batch'), 'the settlement')
  const settled = (await outcomesOf(auditPath)).filter(({ op }) => op === 'usage.batch')
  assert.deepEqual(
    settled.map(({ costMicros, usage }) => [costMicros, usage.prompt]),
    [[100, 2 * BATCH_TOKENS.input]],
  )
  assert.equal((await claude().messages.batches.delete(id)).type, 'message_batch_deleted')
  await assert.rejects(claude().messages.batches.retrieve(id), /404 .*no such batch/)
})

async function resultsOf(
  client: ReturnType<Awaited<ReturnType<Awaited<ReturnType<typeof batchesSetup>>['gateway']>>['claude']>,
  id: string,
) {
  const found = []
  for await (const one of await client.messages.batches.results(id)) found.push(one)
  return found
}

test('a request that would be denied as a call refuses the batch by its number, and the provider gets nothing', async (t) => {
  const { provider, gateway } = await batchesSetup(t)
  const { openai } = await gateway({
    modelRouting: { dataClassModels: { internal: ['m', 'n'] } },
  })
  const cases: readonly (readonly [RegExp, readonly object[]])[] = [
    [/request 2: .*secret is not allowed/, [line('a'), line('b', { model: 'secret' })]],
    [/request 2: the model n is not that of the first request/, [line('a'), line('b', { model: 'n' })]],
    [
      /request 2: method and url must be POST and \/v1\/chat\/completions/,
      [line('a'), line('b', {}, { url: '/v1/responses' })],
    ],
    [/request 1: url must be one of/, [line('a', {}, { url: '/v1/../files' })]],
    [/request 2: custom_id is the same/, [line('a'), line('a')]],
    [/request 1: stream must be false/, [line('a', { stream: true })]],
    [/request 1: web_search cannot be used in a batch/, [line('a', { tools: [{ type: 'web_search' }] })]],
    [/request 1: other is not a member/, [line('a', {}, { other: 1 })]],
    [
      /request 1: .*file_id names content/,
      [line('a', { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-9' } }] }] })],
    ],
    [/the batch has no requests/, []],
  ]
  for (const [expected, lines] of cases) await assert.rejects(uploaded(openai(), lines), expected)
  assert.equal(provider.calls.length, 0)
})

test('files and batches of another agent or user are as those that do not exist', async (t) => {
  const { provider, gateway } = await batchesSetup(t)
  const { openai } = await gateway()
  const mine = openai()
  const batch = await createdBatch(mine, [line('a')])
  provider.finish(batch.id)
  const output = (await mine.batches.retrieve(batch.id)).output_file_id ?? assert.fail()
  const before = provider.calls.length
  for (const other of [openai(sub('intruder', 's1')), openai({ act: { sub: 'user:bob' } })]) {
    await assert.rejects(other.batches.retrieve(batch.id), /404 .*no such batch/)
    await assert.rejects(other.batches.cancel(batch.id), /404 .*no such batch/)
    await assert.rejects(other.files.content(output), /404 .*no such file/)
    assert.deepEqual((await other.batches.list()).data, [])
    const stolen = {
      input_file_id: batch.input_file_id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    } as const
    await assert.rejects(other.batches.create(stolen), /404 .*no such file/)
  }
  assert.equal(provider.calls.length, before)
  const without = openai({ scope: 'models:r models.files:r' })
  await assert.rejects(without.batches.list(), /403 .*scope models\.batches:r is required/)
})

test('a provider that answers with another batch is not believed', async (t) => {
  const { provider, gateway } = await batchesSetup(t)
  const { openai } = await gateway()
  const mine = await createdBatch(openai(), [line('a')])
  const theirs = openai(sub('other', 's1'))
  const own = await createdBatch(theirs, [line('b')])
  provider.forge({ id: mine.id })
  await assert.rejects(theirs.batches.retrieve(own.id), /502 .*responded with another batch/)
  const { id } = await uploaded(theirs, [line('c')])
  provider.forge({ id: mine.id })
  const request = { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h' } as const
  await assert.rejects(theirs.batches.create(request), /502 /)
  assert.equal((await openai().batches.retrieve(mine.id)).id, mine.id)
})

test('secrets are redacted in the file before it is stored, and in each line of the results', async (t) => {
  const { provider, gateway } = await batchesSetup(t)
  const dlp = { dlpProfiles: { p: { detectors: ['email'] } }, dlp: { defaultProfile: 'p' } }
  const { openai } = await gateway(dlp)
  const secret = { messages: [{ role: 'user', content: 'write to ada@example.com' }] }
  const batch = await createdBatch(openai(), [line('a'), line('b', secret)])
  assert.doesNotMatch(provider.files.get(batch.input_file_id) ?? '@example.com', /ada@example\.com/)
  provider.finish(batch.id, 'write to bob@example.com')
  const output = (await openai().batches.retrieve(batch.id)).output_file_id ?? assert.fail()
  const text = await (await openai().files.content(output)).text()
  assert.doesNotMatch(text, /bob@example\.com/)
  assert.equal(text.trim().split('\n').length, 2)
})
