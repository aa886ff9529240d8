import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isObject } from '@plat/core'
import { chat, model, routeOver } from '../../testing/model-route.ts'

test('a chat that names a file of the account is denied as one that names no file, and nothing is sent', async (t) => {
  const provider = await model(t)
  const { ask, as } = await routeOver(t, [{ upstream: provider.url }])
  const naming = (id: string) => ({
    ...chat,
    messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: id } }] }],
  })
  const [first, second] = [await ask(naming('file-1')), await ask(naming('file-unknown'))]
  const errorOf = ({ text }: { readonly text: string }) => {
    const { error } = JSON.parse(text)
    assert.ok(isObject(error))
    return { code: error.code, param: error.param, message: String(error.message).replace(/Decision .*/, '') }
  }
  assert.deepEqual([first.status, second.status], [403, 403])
  assert.deepEqual(errorOf(first), errorOf(second))
  assert.equal(errorOf(first).code, 'policy_denied')
  assert.match(errorOf(first).message, /file_id names content at the provider that this caller did not store there/)
  // Anthropic's form, by another caller, translated for this provider.
  const source = { type: 'file', file_id: 'file-1' }
  const document = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: [{ type: 'document', source }] }] }
  const translated = await as({}, {}, 'messages')(document)
  assert.deepEqual([translated.status, JSON.parse(translated.text).error.code], [403, 'policy_denied'])
  const cached = { google: { cached_content: 'cachedContents/of-another-agent' } }
  assert.equal((await ask({ ...chat, extra_body: cached })).status, 403)
  const qwen = [{ role: 'system', content: 'fileid://file-fe-1' }, ...chat.messages]
  assert.equal((await ask({ ...chat, messages: qwen })).status, 403)
  assert.equal(provider.calls.length, 0)
  assert.equal((await ask({ ...chat, metadata: { file_id: 'mine' } })).status, 200)
})

test('what holds files is refused by name', async (t) => {
  const provider = await model(t)
  const { as } = await routeOver(t, [{ upstream: provider.url }])
  for (const path of ['vector_stores', 'containers']) {
    const { status, headers, text } = await as({}, {}, path)({})
    assert.deepEqual([status, headers.get('x-should-retry')], [501, 'false'], path)
    assert.match(text, new RegExp(`${path.split('/').at(-1)} is not built yet in this version: `))
  }
  assert.equal(provider.calls.length, 0)
})

test('a request that names further models is refused, and reaches none of them', async (t) => {
  const provider = await model(t)
  const { as } = await routeOver(t, [{ upstream: provider.url }])
  const members: readonly (readonly [string, object])[] = [
    ['models', { models: ['large-1'] }],
    ['fallbacks', { fallbacks: ['large-1'] }],
    ['context_window_fallbacks', { context_window_fallbacks: [{ 'small-1': ['large-1'] }] }],
    ['preset', { preset: 'large' }],
  ]
  for (const path of ['chat/completions', 'completions', 'responses', 'messages', 'embeddings']) {
    for (const [param, member] of members) {
      const { status, text } = await as({}, {}, path)({ ...chat, max_tokens: 1, ...member })
      assert.equal(status, 400, `${path} ${param}`)
      assert.match(text, new RegExp(`${param} may name another model than model does`))
    }
  }
  assert.equal(provider.calls.length, 0)
  assert.equal((await as({})({ ...chat, models: null })).status, 200)
})
