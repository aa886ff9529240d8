import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { kmsEnv } from '@plat/key-services/testing/environments'
import { type KmsServer, startKms } from '@plat/key-services/testing/kms-server'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { logTo, started, TOKEN } from '../testing/started.ts'

/** A gateway that uses keys of `kms`, in front of the server `notes` and the agent `default/helper`. */
async function setUp(t: TestContext, kms: KmsServer, own: object) {
  const dir = tempFolder()
  const [upstream, agent] = [await startScriptedUpstream(), await startTestAgent()]
  t.after(() => Promise.all([upstream.close(), agent.close()]))
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const put = async (name: string, value: string) => {
    await writeFile(join(dir, name), value)
    return join(dir, name)
  }
  const least = { allowedCallers: [], skills: [], streaming: true, trust: 'trusted', version: '1.0.0' }
  const agents = { version: 1, agents: { 'default/helper': { endpoint: agent.url, ...least } } }
  const auditPath = join(dir, 'audit.jsonl')
  const config = {
    auditPath,
    policyFile: await put('policies.json', policiesFile([testPolicy({ name: 'default/assistant', rules: ALL })])),
    upstreams: { notes: upstream.url },
    a2a: { routesFile: await put('agents.json', JSON.stringify(agents)) },
    ...own,
  }
  const lines: string[] = []
  const { gateway, issuer } = await started(t, config, false, { log: logTo(lines), env: kmsEnv(kms.url) })
  const send = async (path: string, scope: string, method: string, params: object) => {
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${issuer.token({ scope })}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
        'a2a-version': '1.0',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
    return response.text()
  }
  return {
    dir,
    auditPath,
    agent,
    lines,
    url: gateway.url,
    callTool: (args: object = {}) => send('/mcp/notes', 'tools:notes', 'tools/call', { name: 'add', arguments: args }),
    callAgent: () =>
      send('/a2a/default/helper', 'agents:helper', 'SendMessage', {
        message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'hello' }] },
      }),
    metrics: async () => (await fetch(`${gateway.url}/metrics`)).text(),
    admin: async (path: string) => {
      const response = await fetch(gateway.adminUrl + path, { headers: { authorization: `Bearer ${TOKEN}` } })
      return response.text()
    },
  }
}

const ALL = [{ name: 'all', action: 'allow' as const }]
const PLAT = fileURLToPath(new URL('../../../apps/cli/bin/plat.mjs', import.meta.url))
const NOT_CREATED = 'a checkpoint of the audit ledger could not be created'

test('checkpoints by a key of a key service wait while it does not respond, calls go on, and all records are signed afterwards', async (t) => {
  // Shows D3.metric.plat_gateway_key_service_seconds and D3.metric.plat_gateway_key_service_failures_total.
  const kms = await startKms(t)
  const auditCheckpointKey = kms.uri(kms.add('ECC_NIST_P256'))
  const { dir, auditPath, callTool, lines, metrics, admin } = await setUp(t, kms, {
    auditCheckpointKey,
    auditCheckpointEvery: 1,
  })
  const checkpoints = () =>
    wholeLines(auditPath).flatMap((line) => (line.includes('"kind":"checkpoint"') ? [JSON.parse(line).rec] : []))
  const signedUpTo = async () => Number(/^plat_gateway_audit_signed_checkpoint_seq (\S+)$/m.exec(await metrics())?.[1])
  await callTool()
  await until(() => checkpoints().length > 0, 'a checkpoint')
  const settled = async () => (await signedUpTo()) === wholeLines(auditPath).length - 2
  await until(settled, 'the metric of the last checkpoint')
  const before = await signedUpTo()

  kms.fail('hang')
  const signs = () => kms.requests.filter((action) => action === 'Sign').length
  const sent = signs()
  for (let count = 0; count < 20; count++) assert.match(await callTool({ count }), /"result"/)
  await until(() => signs() > sent, 'the request that is not answered')
  assert.equal(await signedUpTo(), before, 'nothing is signed')
  await until(() => wholeLines(auditPath).length > before + 20, 'the records of the calls')
  kms.fail('cut')
  kms.release()
  await until(() => lines.some((line) => line.includes(NOT_CREATED)), 'the log line')
  assert.match(lines.find((line) => line.includes(NOT_CREATED)) ?? '', /kms:\/\/aws\/eu-central-1\/.*KMS/)
  const text = await metrics()
  assert.match(
    text,
    /^plat_gateway_key_service_failures_total\{service="kms",operation="sign",reason="unavailable"\} [1-9]/m,
  )
  assert.match(text, /^plat_gateway_key_service_seconds_count\{service="kms",operation="sign"\} [1-9]/m)
  assert.match(await callTool(), /"result"/)

  kms.recover()
  await callTool()
  await until(settled, 'the checkpoint over all records')
  assert.ok(lines.some((line) => line.includes('checkpoints of the audit ledger are created again')))
  const file = join(dir, 'jwks.json')
  await writeFile(file, await admin('/v1/audit/jwks'))
  const { stdout } = await promisify(execFile)(process.execPath, [
    PLAT,
    'audit',
    'verify',
    auditPath,
    '-key',
    file,
    '-o',
    'json',
  ])
  const { verdict, checkpoints: found } = JSON.parse(stdout)
  assert.deepEqual([verdict, found.signed], ['valid', checkpoints().length])
})

test('calls to agents with a transaction token are refused with state_unavailable while the key service is away', async (t) => {
  const kms = await startKms(t)
  const signingKey = kms.uri(kms.add('ECC_NIST_EDWARDS25519'))
  const { agent, callAgent, callTool, lines } = await setUp(t, kms, {
    txnTokens: { mode: 'add', signingKey, audience: 'plat.local' },
  })
  assert.match(await callAgent(), /"result"/)
  assert.equal(agent.reached.length, 1)
  kms.fail('cut')
  const [refused, served] = await Promise.all([callAgent(), callTool()])
  assert.match(refused, /"error":"state_unavailable"/)
  assert.match(refused, /the transaction token cannot be signed now/)
  assert.doesNotMatch(refused, /kms:|127\.0\.0\.1:|\.ts:/)
  assert.match(served, /"result"/, 'tools need no transaction token')
  assert.equal(agent.reached.length, 1, 'the agent was not called')
  assert.ok(lines.some((line) => line.includes('a transaction token could not be signed') && line.includes(signingKey)))
  kms.recover()
  assert.match(await callAgent(), /"result"/)
})

test('arguments wait to be captured while the key service is away, and calls go on', async (t) => {
  const kms = await startKms(t)
  const key = kms.uri(kms.add('SYMMETRIC_DEFAULT'))
  const { callTool, lines, metrics } = await setUp(t, kms, {
    captureArgs: { enabled: true, dir: join(tempFolder(), 'captures'), key },
  })
  kms.fail('cut')
  assert.match(await callTool({ n: 1 }), /"result"/)
  const counted = async (outcome: string) =>
    Number(new RegExp(`arg_captures_total\\{outcome="${outcome}"\\} (\\d+)`).exec(await metrics())?.[1] ?? 0)
  await until(() => lines.some((line) => line.includes('captures of arguments wait for the key service')), 'the log')
  kms.recover()
  assert.match(await callTool({ n: 2 }), /"result"/)
  await until(async () => (await counted('written')) === 2, 'both captures')
  assert.equal(await counted('failed'), 0)
})
