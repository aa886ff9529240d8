import assert from 'node:assert/strict'
import { request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { startFilesServer } from '@plat/testkit/files-server'
import { TEST_TRUST_DOMAIN } from '@plat/testkit/identity'
import OpenAI, { toFile } from 'openai'
import { started } from '../../../testing/started.ts'

const SCOPE = 'models:r models.files:r models.batches:r'
const sub = (agent: string, session: string) => ({
  sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/default/agent/${agent}/session/${session}`,
  plat_agent: agent,
  plat_session: session,
})

/** Callers that differ from the owner in one part each. */
const STRANGERS = {
  'another agent': sub('intruder', 's1'),
  'an agent whose name begins like that of the owner': sub('assistant2', 's1'),
  'another user': { act: { sub: 'user:bob' } },
  'no user': { act: undefined },
  'a user whose name differs in case': { act: { sub: 'user:Ada' } },
  'another namespace': {
    sub: `spiffe://${TEST_TRUST_DOMAIN}/ns/team/agent/assistant/session/s1`,
    plat_ns: 'team',
  },
}

async function setUp(t: TestContext) {
  const provider = await startFilesServer()
  t.after(() => provider.close())
  const { gateway, issuer } = await started(t, { models: { r: { upstream: provider.url } } })
  const token = (claims: object = {}) => issuer.token({ scope: SCOPE, ...claims })
  const openai = new OpenAI({ baseURL: `${gateway.url}/llm/r/v1`, apiKey: token(), maxRetries: 0 })
  const file = await openai.files.create({ file: await toFile(Buffer.from('secret'), 'a.txt'), purpose: 'user_data' })
  return { provider, gateway, token, id: file.id }
}

/** Sends a path as it is: `fetch` would normalize it. */
function send(base: string, method: string, path: string, token: string): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, reject) => {
    request({ hostname, port, method, path, headers: { authorization: `Bearer ${token}` } }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }))
    })
      .on('error', reject)
      .end()
  })
}

const encoded = (text: string) => [...text].map((c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0')}`).join('')

/** Spellings that a provider or a proxy before it might read as the id. */
const spellings = (id: string): readonly string[] => [
  id,
  encoded(id),
  encoded(encoded(id)),
  id.toUpperCase(),
  `${id}/`,
  `/${id}`,
  `./${id}`,
  `x/../${id}`,
  `x/%2e%2e/${id}`,
  `%2e/${id}`,
  `${id}%2f`,
  `${id}%00`,
  `${id}%20`,
  `${id};x=1`,
  `${id}?x=/../y`,
  `${id}#x`,
  `${id}.`,
  `${id}\\`,
]

test('no spelling of its id leads another caller to a file, or a request to its provider', async (t) => {
  const { provider, gateway, token, id } = await setUp(t)
  const before = provider.calls.length
  for (const [who, claims] of Object.entries(STRANGERS)) {
    const bearer = token(claims)
    for (const spelled of spellings(id)) {
      for (const [method, path] of [
        ['GET', `/llm/r/v1/files/${spelled}`],
        ['GET', `/llm/r/v1/files/${spelled}/content`],
        ['DELETE', `/llm/r/v1/files/${spelled}`],
        ['GET', `/llm/v1/files/${spelled}`],
      ] as const) {
        const { status, text } = await send(gateway.url, method, path, bearer)
        assert.ok(status >= 400 && status < 500, `${who}: ${method} ${path}: ${status} ${text.slice(0, 200)}`)
        assert.doesNotMatch(text, /a\.txt|secret/, `${who}: ${path}`)
      }
    }
  }
  assert.equal(provider.calls.length, before, 'nothing reached the provider')
  assert.ok(provider.stored.has(id))
})

test('a cursor that names a file of another caller reveals nothing about it', async (t) => {
  const { provider, gateway, token, id } = await setUp(t)
  const before = provider.calls.length
  for (const claims of Object.values(STRANGERS)) {
    const answers: string[] = []
    for (const cursor of [id, encoded(id), 'file-unknown'])
      for (const query of [`after=${cursor}`, `after=${cursor}&limit=1`, `limit=1&after=${cursor}&after=x`]) {
        const { status, text } = await send(gateway.url, 'GET', `/llm/r/v1/files?${query}`, token(claims))
        assert.ok(!text.includes('a.txt'), text)
        if (query === `after=${cursor}`)
          answers.push(
            `${status} ${text
              .replaceAll(id, 'ID')
              .replaceAll('file-unknown', 'ID')
              .replace(/Decision [^"]*/, '')}`,
          )
      }
    const [first = '', , unknown = ''] = answers
    assert.equal(first.replace(/"[0-9a-f-]{36}"/g, ''), unknown.replace(/"[0-9a-f-]{36}"/g, ''))
  }
  assert.equal(provider.calls.length, before)
})

test('the owner keeps its file under its id, in another session as well', async (t) => {
  const { gateway, token, id } = await setUp(t)
  for (const claims of [{}, sub('assistant', 's2')]) {
    const { status, text } = await send(gateway.url, 'GET', `/llm/r/v1/files/${id}`, token(claims))
    assert.equal(status, 200, text)
    assert.equal((await send(gateway.url, 'GET', `/llm/r/v1/files/x/../${id}`, token(claims))).status, 404)
  }
})
