import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { toFile } from 'openai'
import { batchesSetup, createdBatch, line, sub, uploaded } from '../../../testing/batches.ts'
import { outcomesOf } from '../testing.ts'

const creation = (input_file_id: string) =>
  ({ input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' }) as const

test('a file is judged again when its batch is created, by what is in force then', async (t) => {
  const { provider, gateway } = await batchesSetup(t)
  const before = await gateway()
  const secret = { messages: [{ role: 'user', content: 'write to ada@example.com' }] }
  const withSecret = await uploaded(before.openai(), [line('a'), line('b', secret)])
  const plain = await uploaded(before.openai(), [line('a')])
  await before.drain()
  const dlp = { dlpProfiles: { p: { detectors: ['email'] } }, dlp: { defaultProfile: 'p' } }
  const after = await gateway({ ...dlp, modelRouting: { dataClassModels: { internal: ['m'], confidential: ['own'] } } })
  await assert.rejects(
    after.openai().batches.create(creation(withSecret.id)),
    /409 .*request 2: redaction, .*upload the/,
  )
  const tainted = after.openai({ plat_inherited_taints: 'data-class:confidential', ...sub('assistant', 'tainted') })
  await assert.rejects(
    tainted.batches.create(creation(plain.id)),
    /403 .*request 1: the model m is not allowed for conf/,
  )
  const wrong = { ...creation(plain.id), endpoint: '/v1/embeddings' } as const
  await assert.rejects(after.openai().batches.create(wrong), /400 .*request 1: method and url must be POST and/)
  assert.ok(!provider.calls.some(({ path }) => path === '/v1/batches'))
  assert.equal((await after.openai().batches.create(creation(plain.id))).status, 'in_progress')
})

test('policies see each request as its model, and the creation as an endpoint', async (t) => {
  const { dir, gateway, provider, auditPath } = await batchesSetup(t)
  const policyFile = join(dir, 'policies.json')
  const rule = (name: string, tools: readonly string[], action: string) => ({
    name,
    action,
    match: { servers: ['llm/r'], tools },
  })
  const rules = [
    rule('endpoints', ['files', 'files/*', 'batches', 'batches/*'], 'allow'),
    rule('small', ['m'], 'allow'),
    rule('dear', ['n'], 'require_approval'),
  ]
  await writeFile(policyFile, policiesFile([testPolicy({ rules })]))
  const { openai } = await gateway({ policyFile, modelPolicy: 'policy' })
  await assert.rejects(uploaded(openai(), [line('a', { model: 'n' })]), /403 .*request 1: .*cannot be approved here/)
  await assert.rejects(uploaded(openai(), [line('a', { model: 'o' })]), /403 .*request 1: /)
  assert.equal(provider.calls.length, 0)
  await createdBatch(openai(), [line('a'), line('b')])
  const denied = (await outcomesOf(auditPath)).filter(({ op }) => op === 'model.line')
  assert.equal(denied.length, 0)
})

test('the model that a route sets, and limits of tokens, are written into the file', async (t) => {
  const { provider, gateway } = await batchesSetup(t)
  const route = { model: 'm', aliases: { fast: 'm' }, maxTokensPerRequest: 50 }
  const { openai } = await gateway({}, { route })
  const batch = await createdBatch(openai(), [line('a', { model: 'fast' }), line('b', { max_tokens: 20 })])
  const bodies = (provider.files.get(batch.input_file_id) ?? '')
    .trim()
    .split('\n')
    .map((one) => JSON.parse(one).body)
  assert.deepEqual(
    bodies.map(({ model, max_tokens }) => [model, max_tokens]),
    [
      ['m', 50],
      ['m', 20],
    ],
  )
})

test('lines that are too long, not strict, or no objects are refused by their number', async (t) => {
  const { provider, gateway } = await batchesSetup(t)
  const { openai } = await gateway({ maxBodyBytes: 4096 })
  const good = JSON.stringify(line('a'))
  const cases: readonly (readonly [RegExp, string])[] = [
    [
      /request 2: the line is longer than 4096 bytes/,
      `${good}\n${JSON.stringify(line('b', { user: 'x'.repeat(5000) }))}`,
    ],
    [/request 2: is not strict JSON/, `${good}\n{"custom_id":"b","custom_id":"c"}\n`],
    [/request 2: is not strict JSON/, `${good}\n\n`],
    [/request 2: is not a JSON object/, `${good}\r\n[]\n`],
  ]
  for (const [expected, text] of cases) {
    const file = await toFile(Buffer.from(text), 'b.jsonl')
    await assert.rejects(openai().files.create({ file, purpose: 'batch' }), expected)
  }
  assert.equal(provider.calls.length, 0)
})

test('results have the labels of the session that created the batch', async (t) => {
  const { provider, gateway } = await batchesSetup(t)
  const { openai } = await gateway({
    modelRouting: { dataClassModels: { internal: ['m', 'own'], confidential: ['own'] } },
  })
  const claims = { plat_inherited_taints: 'data-class:confidential', ...sub('assistant', 'tainted') }
  const batch = await createdBatch(openai(claims), [line('a', { model: 'own' })])
  provider.finish(batch.id)
  const other = openai(sub('assistant', 'other'))
  const output = (await other.batches.retrieve(batch.id)).output_file_id ?? assert.fail()
  await uploaded(other, [line('a')])
  await (await other.files.content(output)).text()
  await assert.rejects(uploaded(other, [line('a')]), /request 1: the model m is not allowed for confidential data/)
})

test('a file of results cannot be named in requests', async (t) => {
  const { provider, gateway } = await batchesSetup(t)
  const { openai } = await gateway()
  const batch = await createdBatch(openai(), [line('a')])
  provider.finish(batch.id)
  const file_id = (await openai().batches.retrieve(batch.id)).output_file_id ?? assert.fail()
  const messages = [{ role: 'user' as const, content: [{ type: 'file' as const, file: { file_id } }] }]
  await assert.rejects(openai().chat.completions.create({ model: 'm', messages }), /403 .*file_id names content/)
  assert.deepEqual(
    (await openai().files.list()).data.map(({ id }) => id),
    [file_id, batch.input_file_id],
  )
  await openai().files.delete(file_id)
  await assert.rejects(openai().files.content(file_id), /404 .*no such file/)
})
