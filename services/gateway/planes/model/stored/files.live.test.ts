import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import Anthropic, { toFile as toAnthropicFile } from '@anthropic-ai/sdk'
import { startFilesServer } from '@plat/testkit/files-server'
import { TEST_TRUST_DOMAIN } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import OpenAI, { toFile } from 'openai'
import { started } from '../../../testing/started.ts'
import { outcomesOf } from '../testing.ts'

const SCOPES = 'models:r models.files:r'
const BETA = 'files-api-2025-04-14'

async function setUp(t: TestContext, { route = {}, config = {}, isRestarted = false } = {}) {
  const provider = await startFilesServer()
  t.after(() => provider.close())
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const whole = { models: { r: { upstream: provider.url, ...route } }, auditPath, ...config }
  const running = await started(t, whole, isRestarted)
  const clientsOf = ({ gateway, issuer }: Awaited<ReturnType<typeof started>>) => ({
    openai: (claims: object = {}, path = '/llm/r/v1') =>
      new OpenAI({
        baseURL: gateway.url + path,
        apiKey: issuer.token({ scope: SCOPES, ...claims }),
        maxRetries: 0,
      }),
    claude: (claims: object = {}) =>
      new Anthropic({
        baseURL: `${gateway.url}/llm/r`,
        authToken: issuer.token({ scope: SCOPES, ...claims }),
        apiKey: null,
        maxRetries: 0,
        // The files API is a beta.
        defaultHeaders: { 'anthropic-beta': BETA },
      }),
  })
  return { provider, auditPath, whole, running, clientsOf, ...clientsOf(running) }
}

const sub = (agent: string, session: string) => ({
  sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/${agent}/session/${session}`,
  plat_agent: agent,
  plat_session: session,
})
const others = [sub('intruder', 's1'), { act: { sub: 'user:bob' } }]

const upload = async (client: OpenAI, name = 'notes.txt') =>
  client.files.create({ file: await toFile(Buffer.from(`the text of ${name}`), name), purpose: 'user_data' })

const naming = (file_id: string): OpenAI.ChatCompletionCreateParamsNonStreaming => ({
  model: 'm',
  messages: [{ role: 'user', content: [{ type: 'file', file: { file_id } }] }],
})

test('files are uploaded, used, listed, read and deleted by their agent and user, in any session', async (t) => {
  const { provider, openai, auditPath } = await setUp(t)
  const mine = openai()
  const { id } = await upload(mine)
  assert.deepEqual(provider.calls.at(-1)?.fields, { purpose: 'user_data' })
  const later = openai(sub('assistant', 'later'))
  const second = await upload(later, 'more.txt')
  assert.equal((await later.chat.completions.create(naming(id))).choices[0]?.message.content, 'read')
  assert.equal((await later.files.retrieve(id)).filename, 'notes.txt')
  assert.equal(await (await later.files.content(id)).text(), 'the text of notes.txt')
  assert.deepEqual(
    (await openai({}, '/llm/v1').files.list()).data.map(({ id }) => id),
    [second.id, id],
  )
  const pages = []
  for await (const file of mine.files.list({ limit: 1, order: 'asc' })) pages.push(file.id)
  assert.deepEqual(pages, [id, second.id])
  assert.equal((await mine.files.delete(id)).deleted, true)
  await assert.rejects(mine.files.retrieve(id), /404 .*no such file/)
  await assert.rejects(mine.chat.completions.create(naming(id)), /403 .*file_id names content/)
  assert.deepEqual([...provider.stored.keys()], [second.id])
  const methods = (await outcomesOf(auditPath)).map(({ op, method, tool }) => [op, method, tool])
  assert.ok(methods.some((one) => one.join() === 'model.file,files,files'))
})

test('a file of another agent or user is as one that does not exist, and its provider gets no request', async (t) => {
  const { provider, openai } = await setUp(t)
  const { id } = await upload(openai())
  const before = provider.calls.length
  for (const other of others.map((claims) => openai(claims))) {
    const errorOf = async (sent: Promise<unknown>) => {
      let message = ''
      await assert.rejects(sent, (error: Error) => {
        message = error.message
        return true
      })
      return message.replace(/Decision .*/, '')
    }
    for (const at of [id, 'file-unknown']) {
      assert.match(await errorOf(other.files.retrieve(at)), /404 .*no such file/)
      assert.match(await errorOf(other.files.delete(at)), /404 .*no such file/)
      assert.match(await errorOf(other.files.content(at)), /404 .*no such file/)
      assert.match(await errorOf(other.chat.completions.create(naming(at))), /403 .*file_id names content/)
    }
    assert.deepEqual((await other.files.list()).data, [])
  }
  assert.equal(provider.calls.length, before)
  assert.equal(provider.stored.size, 1)
})

test('the client of Anthropic uploads a file and names it in a message', async (t) => {
  const { claude, provider } = await setUp(t, { route: { provider: 'anthropic' } })
  const file = await claude().beta.files.upload({ file: await toAnthropicFile(Buffer.from('a'), 'a.txt') })
  assert.equal(provider.calls.at(-1)?.headers['anthropic-beta'], BETA)
  const source = { type: 'file', file_id: file.id } as const
  const message = {
    ...{ model: 'm', max_tokens: 9, betas: [BETA] },
    messages: [{ role: 'user' as const, content: [{ type: 'document' as const, source }] }],
  }
  assert.equal((await claude().beta.messages.create(message)).type, 'message')
  assert.equal(await (await claude().beta.files.download(file.id)).text(), 'a')
  const listed = []
  for await (const one of claude().beta.files.list()) listed.push(one.id)
  assert.deepEqual(listed, [file.id])
  for (const claims of others) {
    await assert.rejects(claude(claims).beta.files.retrieveMetadata(file.id), /404 .*no such file/)
    await assert.rejects(claude(claims).beta.messages.create(message), /403 .*file_id names content/)
  }
  assert.equal((await claude().beta.files.delete(file.id)).type, 'file_deleted')
})

test('files need their scope, a purpose that calls have, and a provider that stores them', async (t) => {
  const { openai, provider } = await setUp(t, {
    config: { sessionBudgetUSD: 1 },
    route: { fallbacks: [{ upstream: 'http://127.0.0.1:9/v1' }] },
  })
  const chatting = openai({ scope: 'models:r' })
  await assert.rejects(upload(chatting), /403 .*scope models\.files:r is required/)
  await assert.rejects(chatting.files.list(), /403 .*scope models\.files:r is required/)
  for (const [purpose, expected] of [
    ['fine-tune', /400 .*purpose must be one of user_data, vision, assistants, batch/],
    ['batch', /400 .*request 1: custom_id must have/],
  ] as const) {
    const sent = openai().files.create({ file: await toFile(Buffer.from('{}'), 'b.jsonl'), purpose })
    await assert.rejects(sent, expected)
  }
  await assert.rejects(openai().files.retrieve('..%2fmodels'), /404 /)
  assert.equal(provider.calls.length, 0)
  assert.match((await upload(openai())).id, /^file-/)
})

test('names of files are redacted, and their owners are known after a restart', async (t) => {
  const dlp = { dlpProfiles: { p: { detectors: ['email'] } }, dlp: { defaultProfile: 'p' } }
  const { provider, openai, running, whole, clientsOf } = await setUp(t, { config: dlp, isRestarted: true })
  const { id } = await upload(openai(), 'ada@example.com.txt')
  assert.doesNotMatch(provider.stored.get(id) ?? '@example.com', /@example\.com/)
  await running.gateway.drain()
  const restarted = clientsOf(await started(t, whole))
  assert.equal((await restarted.openai().files.retrieve(id)).id, id)
  await assert.rejects(restarted.openai(others[0]).files.retrieve(id), /404 .*no such file/)
})

test('a file has the taint labels of the session that uploaded it, for the class of data and the session that uses it', async (t) => {
  const routing = { dataClassModels: { internal: ['m', 'own'], confidential: ['own'] } }
  const { openai } = await setUp(t, { config: { modelRouting: routing } })
  const tainted = { plat_inherited_taints: 'data-class:confidential', ...sub('assistant', 'tainted') }
  const { id } = await upload(openai(tainted))
  const plain = await upload(openai(sub('assistant', 'plain')))
  const other = openai(sub('assistant', 'other'))
  const chat = { model: 'm', messages: [{ role: 'user' as const, content: 'hi' }] }
  await other.chat.completions.create(naming(plain.id))
  await assert.rejects(other.chat.completions.create(naming(id)), /403 .*m is not allowed for confidential data/)
  await other.chat.completions.create(chat)
  await other.chat.completions.create({ ...naming(id), model: 'own' })
  await assert.rejects(other.chat.completions.create(chat), /403 .*m is not allowed for confidential data/)
})
