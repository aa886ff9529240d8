import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import type { JsonObject } from '@plat/core'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { denialIn } from '@plat/testkit/mcp/denial'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { startOpa } from '@plat/testkit/opa/opa'
import { until } from '@plat/testkit/until'
import { examples } from '../../../testing/configured.ts'
import { started } from '../../../testing/started.ts'

async function setUp(t: TestContext, rego: string, data = 'plat', more: JsonObject = {}) {
  const dir = tempFolder()
  const file = path.join(dir, 'policy.rego')
  await writeFile(file, rego)
  const opa = await startOpa([file], null)
  const upstream = await startScriptedUpstream()
  t.after(() => Promise.all([opa.stop(), upstream.close()]))
  upstream.answers((request, response) => {
    const tools = ['read_note', 'transfer', 'delete'].map((name) => ({ name, inputSchema: { type: 'object' } }))
    const result = request.body.includes('tools/list') ? { tools } : { content: [] }
    return json(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))(request, response)
  })
  const auditPath = path.join(dir, 'audit.jsonl')
  const url = `${opa.url}/v1/data/${data}`
  const { gateway, issuer } = await started(t, {
    auditPath,
    upstreams: { notes: upstream.url },
    policy: { rego: { url, timeoutMs: 30_000, ...more } },
  })
  const headers = {
    authorization: `Bearer ${issuer.token()}`,
    accept: 'application/json',
    'content-type': 'application/json',
    prefer: 'wait=0',
  }
  const ask = async (method: string, params: JsonObject): Promise<JsonObject> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    return Object(await (await fetch(`${gateway.url}/mcp/notes`, { method: 'POST', headers, body })).json())
  }
  return {
    opa,
    async call(name: string, args: JsonObject = {}) {
      const denial = denialIn(await ask('tools/call', { name, arguments: args }))
      return denial === null ? 'allowed' : String(denial.data.error)
    },
    async list() {
      const { result } = await ask('tools/list', {})
      return Object(result).tools.map(({ name }: { name: string }) => name)
    },
    async reasons() {
      const lines = wholeLines(auditPath)
      return lines
        .map((line) => Object(JSON.parse(line)).rec)
        .flatMap(({ kind, reason }) => (kind === 'decision' ? [reason] : []))
    },
  }
}

test('the policy of the documentation does in a real OPA what the documentation says', async (t) => {
  const { call, list, reasons } = await setUp(t, examples('policy-engines.md', 'rego')[0])
  assert.equal(await call('read_note'), 'allowed')
  assert.equal(await call('transfer', { amount: 100 }), 'allowed')
  assert.equal(await call('transfer', { amount: 101 }), 'approval_pending')
  assert.equal(await call('transfer'), 'policy_denied')
  assert.equal(await call('delete'), 'policy_denied')
  assert.deepEqual(await list(), ['read_note', 'transfer'])
  await until(
    async () => (await reasons()).includes('only tools that read, and transfers'),
    'the record of the refusal',
  )
})

test('every shape of a result that is documented is what a real OPA answers', async (t) => {
  const rego = `package shapes
yes := true
no := false
word := "allow"
object := {"action": "allow", "reason": "so it is", "more": [1]}
number := 1
undefined_rule := true if { input.identity.agent == "none" }
`
  const expected: Readonly<Record<string, string>> = {
    yes: 'allowed',
    no: 'policy_denied',
    word: 'allowed',
    object: 'allowed',
    number: 'policy_denied',
    undefined_rule: 'policy_denied',
    'no/such/rule': 'policy_denied',
  }
  for (const [rule, verdict] of Object.entries(expected)) {
    const { call } = await setUp(t, rego, `shapes/${rule}`)
    assert.equal(await call('read_note'), verdict, rule)
  }
})

test('a real OPA that requires a token gets it, and one that has gone denies', async (t) => {
  const dir = tempFolder()
  const [file, bearerTokenFile] = [path.join(dir, 'authz.rego'), path.join(dir, 'token')]
  await writeFile(file, 'package system.authz\ndefault allow := false\nallow if input.identity == "s3cret"\n')
  const guarded = await startOpa([file], 's3cret')
  t.after(() => guarded.stop())
  await fetch(`${guarded.url}/v1/policies/p`, {
    method: 'PUT',
    headers: { authorization: 'Bearer s3cret' },
    body: 'package p\nallow := true\n',
  })
  const url = `${guarded.url}/v1/data/p/allow`
  const without = await setUp(t, 'package x', 'x', { url })
  assert.equal(await without.call('read_note'), 'policy_denied')
  await writeFile(bearerTokenFile, 's3cret\n')
  const withToken = await setUp(t, 'package x', 'x', { url, bearerTokenFile })
  assert.equal(await withToken.call('read_note'), 'allowed')
  await guarded.stop()
  assert.equal(await withToken.call('read_note'), 'policy_denied')
})
