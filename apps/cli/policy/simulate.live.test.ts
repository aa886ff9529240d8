import assert from 'node:assert/strict'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { callTool } from '@plat/testkit/mcp/call'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { homeOf, writeHomeEnv } from '../shared/home.ts'
import { printed, putResource } from '../testing/commands.ts'
import { policyExplain } from './explain.ts'
import { policySimulate } from './simulate.ts'

const TOKEN = 'the-admin-token-of-this-test-1234567890'
const dir = tempFolder()
const file = join(dir, 'candidate.json')
let upstream: ScriptedUpstream
let gateway: GatewayProcess

before(async () => {
  upstream = await startScriptedUpstream()
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  gateway = await startGatewayProcess({ servers: { notes: upstream.url }, env: { PLAT_ADMIN_TOKEN: TOKEN } })
  await mkdir(join(dir, '.plat'), { mode: 0o700 })
  const { url } = gateway
  await writeHomeEnv(homeOf(dir), {
    PLAT_GATEWAY_URL: url,
    PLAT_ADMIN_URL: url,
    PLAT_IDENTITY_URL: url,
    PLAT_BROKER_TOKEN: 'none',
    PLAT_ADMIN_TOKEN: TOKEN,
  })
  for (const name of ['read', 'write']) {
    const { status, text } = await callTool(gateway, 'notes', name, {})
    assert.equal(status, 200, text)
  }
  const outcomes = async () => (await gateway.ledger()).filter((line) => line.includes('"kind":"outcome"'))
  await until(async () => (await outcomes()).length === 2, 'the records of both calls')
})
after(async () => {
  await gateway.close()
  await upstream.close()
})

async function simulated(rules: readonly object[], more: Partial<Parameters<typeof policySimulate>[0]> = {}) {
  await writeFile(file, policiesFile([testPolicy({ rules })], 2))
  return await printed((output) => policySimulate({ dir, file, since: '24h', output: 'table', ...more }, output))
}

const allow = { name: 'all', action: 'allow' }
const deny = { name: 'no', action: 'deny', match: { tools: ['write'] } }

test('plat policy simulate prints decisions that would change, and sets its exit code', async () => {
  assert.deepEqual(await simulated([allow]), {
    code: 0,
    text: '2 calls: 2 same, 0 changed, 0 depend on their arguments',
  })
  const changed = await simulated([allow, deny])
  assert.equal(changed.code, 3)
  assert.match(changed.text, /^1 +assistant +notes\/write +allow +deny +default\/all: no +\d{4}-\d\d-\d\dT[\d:]+Z$/m)
  assert.doesNotMatch(changed.text, /notes\/read/)
  assert.match(changed.text, /2 calls: 1 same, 1 changed, 0 depend/)
  const unknown = await simulated([allow, { ...deny, when: 'args.size > 1' }])
  assert.equal(unknown.code, 3)
  assert.match(unknown.text, /notes\/write +allow +allow or deny/)
})

test('plat policy simulate prints everything for programs, and can be limited to an agent or a time', async () => {
  const { text } = await simulated([allow, deny], { output: 'json', agent: 'assistant' })
  const { counts, items } = JSON.parse(text)
  assert.deepEqual(counts, { same: 1, changed: 1, needs_arguments: 0, skipped: 0 })
  assert.deepEqual([items.length, items[0].verdict, items[0].would.action], [1, 'changed', 'deny'])
  assert.match((await simulated([deny], { agent: 'shop/other' })).text, /^0 calls/)
  const ahead = new Date(Date.now() + 60_000).toISOString()
  assert.match((await simulated([deny], { since: ahead })).text, /^0 calls/)
})

test('plat policy simulate says what is wrong with a file, a time, or the policies', async () => {
  await assert.rejects(
    simulated([allow], { since: 'yesterday' }),
    /^Error: -since yesterday: must be a time such as 24h/,
  )
  await assert.rejects(
    simulated([{ name: 'a', action: 'perhaps' }]),
    /the gateway refused: policies: policies\[0\]\.rules\[0\]\.action/,
  )
  await assert.rejects(simulated([allow], { file: join(dir, 'none.json') }), /none\.json cannot be read as policies/)
})

test('plat policy simulate and explain read the resources of a folder', async () => {
  const resources = join(dir, 'resources')
  await rm(resources, { recursive: true, force: true })
  await putResource(dir, 'mcpservers/default/notes.yaml', 'MCPServer', { url: 'http://127.0.0.1:1/mcp' })
  await putResource(dir, 'agents/default/assistant.yaml', 'Agent', { policyRef: 'p', tools: [{ name: 'notes' }] })
  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', { rules: [allow, deny] })
  const options = { dir, file: dir, since: '24h', output: 'table' as const }
  const { text } = await printed((output) => policySimulate(options, output))
  assert.match(text, /2 calls: 1 same, 1 changed/)

  const records = (await gateway.ledger()).map((line) => JSON.parse(line).rec)
  const call = (tool: string) => records.find(({ kind, tool: name }) => kind === 'outcome' && name === tool)?.call
  const explained = (id: string) => printed((output) => policyExplain({ dir, id, output: 'json' }, output))
  const write = await explained(call('write'))
  const { recorded, now, 'now rule': rule, 'now file': file } = JSON.parse(write.text)
  assert.deepEqual([write.code, recorded, now, rule], [3, 'allow', 'deny', 'no'])
  assert.equal(file, 'toolpolicies/default/p.yaml:1')
  const read = await explained(call('read'))
  assert.deepEqual([read.code, JSON.parse(read.text).now], [0, 'allow'])
  await assert.rejects(explained('0190c0de-7b1e-7c3a-9a52-6d1f2c3b4a59'), /the ledger has no call/)

  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', { rules: [{ ...deny, when: 'args.' }] })
  await assert.rejects(
    printed((output) => policySimulate(options, output)),
    /toolpolicies\/default\/p\.yaml:1: spec\.rules\[0\]\.when: /,
  )
})

test('plat policy simulate prints calls that would be decided alike as one line with their count', async () => {
  const { text } = await simulated([{ name: 'none', action: 'deny' }])
  assert.match(text, /^1 +assistant +notes\/write/m)
  await callTool(gateway, 'notes', 'write', {})
  await until(async () => {
    const again = await simulated([{ name: 'none', action: 'deny' }])
    return again.text.split('\n').length === 4 && /^2 +assistant +notes\/write/m.test(again.text)
  }, 'a line that counts both calls')
})
