import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { started } from '../../testing/started.ts'

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{}}}'

function policies(generation: number, action: 'allow' | 'deny'): string {
  return policiesFile([testPolicy({ rules: [{ name: 'all', action }] })], generation)
}

test('policyFile decides, and is read again every policyReloadSeconds; a broken one leaves the last in force', async (t) => {
  // Shows D3.policy.policyFile, D3.policy.policyReloadSeconds.
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const policyFile = join(tempFolder(), 'policies.json')
  await writeFile(policyFile, policies(1, 'allow'))
  const own = { policyFile, policyReloadSeconds: 1, upstreams: { notes: upstream.url } }
  const { gateway, issuer } = await started(t, own)
  const authorization = `Bearer ${issuer.token()}`
  const headers = { authorization, accept: 'application/json', 'content-type': 'application/json' }
  const denied = async () => {
    const response = await fetch(`${gateway.url}/mcp/notes`, { method: 'POST', headers, body: CALL })
    return /"error":"policy_denied"/.test(await response.text())
  }
  assert.equal(await denied(), false)
  await writeFile(policyFile, policies(2, 'deny'))
  await until(denied, 'the new policies')
  await writeFile(policyFile, '{"version": 1')
  const reloads = async () => {
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    return Number(/^plat_gateway_policy_reloads_total\{result="error"\} (\d+)$/m.exec(metrics)?.[1] ?? 0)
  }
  await until(async () => (await reloads()) > 0, 'the broken file to be seen')
  assert.equal(await denied(), true)
  await writeFile(policyFile, policies(3, 'allow'))
  await until(async () => !(await denied()), 'the mended file')
})
