import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { signJws } from '@plat/tokens'
import { provider } from '../../../testing/people.ts'
import { started } from '../../../testing/started.ts'

const BASE = 'https://gateway.example'

/** A gateway that trusts an identity provider, with an untrusted server `web`; tainted sessions must not call `notes`. */
async function setUp(t: TestContext) {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers((request, response) => {
    const { id } = JSON.parse(request.body)
    const result = { content: [{ type: 'text', text: 'from the web' }] }
    return json(JSON.stringify({ jsonrpc: '2.0', id, result }))(request, response)
  })
  const people = await provider(t)
  const dir = tempFolder()
  const [policyFile, auditPath] = [join(dir, 'policies.json'), join(dir, 'audit.jsonl')]
  const rules = [
    { name: 'all', action: 'allow' },
    { name: 'stop', action: 'deny', match: { servers: ['notes'], taints: ['*'] } },
  ]
  const policy = testPolicy({ name: 'partners/all', namespace: 'partners', agents: ['external'], rules })
  await writeFile(policyFile, policiesFile([policy]))
  const { gateway } = await started(t, {
    ...{ policyFile, auditPath },
    upstreams: { web: upstream.url, notes: upstream.url },
    identity: {
      jwksURL: 'http://127.0.0.1:9/no-broker',
      resourceBaseURL: BASE,
      trustedIssuers: [{ issuer: people.state.issuer, namespace: 'partners', agent: 'external' }],
    },
  })
  let tokens = 0
  /** A new token without `sid`, as a client gets one when it refreshes. */
  const refreshed = (client = 'app', subject = 'u-1') =>
    signJws(
      people.state.signer,
      { typ: 'at+jwt' },
      {
        ...{ iss: people.state.issuer, sub: subject, client_id: client, jti: `token-${++tokens}` },
        ...{ aud: [`${BASE}/mcp/web`, `${BASE}/mcp/notes`], iat: people.now(), exp: people.now() + 300 + tokens },
        scope: 'tools:web tools:notes',
      },
    )
  /** Calls a tool. Returns `passed`, or the code of the refusal. */
  const call = async (token: string | Promise<string>, server: string) => {
    const response = await fetch(`${gateway.url}/mcp/${server}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'read', arguments: {} } }),
    })
    const text = await response.text()
    return /"error":"(\w+)"/.exec(text)?.[1] ?? (text.includes('from the web') ? 'passed' : text)
  }
  const outcomes = () =>
    wholeLines(auditPath)
      .map((line) => JSON.parse(line).rec)
      .filter(({ kind }) => kind === 'outcome')
  return { refreshed, call, outcomes }
}

test('the labels of an external caller stay when it refreshes its token, which names no login', async (t) => {
  const { refreshed, call, outcomes } = await setUp(t)
  assert.equal(await call(refreshed(), 'notes'), 'passed')
  // The answer of an untrusted server labels the session.
  assert.equal(await call(refreshed(), 'web'), 'passed')
  assert.equal(await call(refreshed(), 'notes'), 'policy_denied')
  assert.equal(await call(refreshed('other-app'), 'notes'), 'passed', 'another client')
  assert.equal(await call(refreshed('app', 'u-2'), 'notes'), 'passed', 'another subject')
  assert.equal(await call(refreshed(), 'notes'), 'policy_denied')
  await until(() => outcomes().length === 4, 'the outcomes')
  const [first, second, client, subject] = outcomes().map(({ session }) => session)
  assert.equal(first, second)
  assert.equal(new Set([first, client, subject]).size, 3)
})
