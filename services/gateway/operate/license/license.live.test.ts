import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'

test('the metrics report the state of the license, and agents are served whatever is wrong with it', async (t) => {
  // Shows D3.label.plat_license_state.state.none, D3.label.plat_license_state.state.invalid.
  // Shows D3.state.licenseFile, D3.metric.plat_license_state, D3.metric.plat_license_node_limit.
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json('{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'))
  const noLicence = path.join(tempFolder(), 'license.jws')
  await writeFile(noLicence, 'this is not a licence\n')
  const states = async (licenseFile: string) => {
    const gateway = await startGatewayProcess({ servers: { notes: upstream.url }, config: { licenseFile } })
    t.after(() => gateway.close())
    const call = await fetch(`${gateway.url}/mcp/notes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.token}`,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":{}}}',
    })
    assert.deepEqual(await call.json(), { jsonrpc: '2.0', id: 1, result: { content: [] } })
    const metrics = await (await fetch(`${gateway.url}/metrics`)).text()
    return metrics.match(/^plat_license_.* [1-9]\d*$|^plat_license_(?:days_left|node_limit) .*$/gm)
  }
  const community = (state: string) => [
    `plat_license_state{edition="community",state="${state}"} 1`,
    'plat_license_node_limit 0',
  ]
  const both = await Promise.all([states(''), states(noLicence)])
  assert.deepEqual(both, [community('none'), community('invalid')])
})
