import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { started } from '../../testing/started.ts'

/** A gateway with these rules beside one that allows everything; `call` returns the code of the refusal, or null. */
async function setUp(t: TestContext, rules: readonly object[], config: object = {}) {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const policyFile = join(tempFolder(), 'policies.json')
  await writeFile(policyFile, policiesFile([testPolicy({ rules: [{ name: 'all', action: 'allow' }, ...rules] })]))
  const { gateway, issuer } = await started(t, { policyFile, upstreams: { notes: upstream.url }, ...config })
  const call = async (params: string) => {
    const response = await fetch(`${gateway.url}/mcp/notes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${issuer.token()}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add",${params}}}`,
    })
    return denialIn(JSON.parse(await response.text()))?.data.error ?? null
  }
  return { upstream, call }
}

test('content beside the arguments that is forwarded is judged by policies: _meta and responses to server requests', async (t) => {
  const { upstream, call } = await setUp(t, [
    { name: 'meta', action: 'deny', when: "has(meta.path) && meta.path == '/etc/shadow'" },
    { name: 'inputs', action: 'deny', when: "has(inputResponses.a) && inputResponses.a.content.path == '/etc/shadow'" },
  ])
  const path = '{"path":"/etc/shadow"}'
  const inputs = (content: string) => `"arguments":{},"inputResponses":{"a":{"action":"accept","content":${content}}}`
  assert.equal(await call('"arguments":{},"_meta":{"path":"/tmp"}'), null)
  assert.equal(upstream.received.length, 1)
  assert.equal(await call(`"arguments":{},"_meta":${path}`), 'policy_denied')
  assert.equal(await call(`"arguments":{},"_meta":{"p\\u0061th":"/etc/sh\\u0061dow"}`), 'policy_denied')
  assert.equal(await call(inputs(path)), 'policy_denied')
  assert.equal(upstream.received.length, 1)
})

test('a condition over more arguments than its cost budget allows is given up, and a deny then denies', async (t) => {
  const when = "args.words.exists(word, word == 'never')"
  const { upstream, call } = await setUp(t, [{ name: 'pairs', action: 'deny', when }])
  const list = (count: number) => `"arguments":{"words":[${'"x",'.repeat(count - 1)}"x"]}`
  assert.equal(await call(list(10)), null)
  assert.equal(await call(list(1_000)), null)
  assert.equal(await call(list(500_000)), 'policy_denied')
  assert.equal(upstream.received.length, 2)
})

test('a custom detector finds short values in strings, names and numbers of a call', async (t) => {
  const profile = { requestAction: 'redact', custom: [{ id: 'pin', regex: '\\b4711\\b', secret: false }] }
  const { upstream, call } = await setUp(t, [], { dlpProfiles: { p: profile }, dlp: { defaultProfile: 'p' } })
  const calls = ['"pin":"4711"', '"4711":1', '"n":4711', '"list":[[4711]]', '"u":"47\\u00311"', '"long":47110']
  for (const one of calls) assert.equal(await call(`"arguments":{${one}}`), null, one)
  const sent = upstream.received.map(({ body }) => Object.entries(JSON.parse(body).params.arguments)[0]?.flat().join())
  const mark = '[REDACTED:pin]'
  assert.deepEqual(sent, [`pin,${mark}`, `${mark},1`, `n,${mark}`, `list,${mark}`, `u,${mark}`, 'long,47110'])
})
