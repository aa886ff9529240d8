import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { tempFolder } from '@plat/testkit/local'
import { startFixture } from '@plat/testkit/mcp/fixture'

const MODERN = '2026-07-28'
const LEGACY = '2025-11-25'

test('the official client falls back to the revisions of a server, and a fixed revision is refused with them', async (t) => {
  // Shows D3.registry.protocolVersions.
  const dir = tempFolder()
  const fixture = await startFixture()
  t.after(() => fixture.close())
  const same = { url: fixture.url, namespaces: [], implicit: false, trust: 'trusted', dataClass: 'internal' }
  const servers = {
    'default/old': { ...same, auth: { type: 'none' }, protocolVersions: [LEGACY] },
    'default/both': { ...same, auth: { type: 'none' }, protocolVersions: [LEGACY, MODERN] },
  }
  const upstreamsFile = join(dir, 'upstreams.json')
  await writeFile(upstreamsFile, JSON.stringify({ version: 1, servers, bindings: {}, agentWeb: {} }))
  const named = { old: fixture.url, both: fixture.url }
  const gateway = await startGatewayProcess({ servers: named, config: { upstreamsFile } })
  t.after(() => gateway.close())
  const connected = async (server: string, mode: 'auto' | { pin: typeof MODERN }) => {
    const requestInit = { headers: { authorization: `Bearer ${gateway.token}` } }
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
    t.after(() => client.close())
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp/${server}`), { requestInit }))
    return client
  }
  for (const [server, revision] of [
    ['old', LEGACY],
    ['both', MODERN],
  ] as const) {
    const client = await connected(server, 'auto')
    assert.equal(client.getNegotiatedProtocolVersion(), revision, server)
    const { content } = await client.callTool({ name: 'test_simple_text', arguments: {} })
    assert.ok(Array.isArray(content) && content.length > 0)
  }
  const data = { supported: [LEGACY], requested: MODERN }
  await assert.rejects(connected('old', { pin: MODERN }), { code: -32022, data })
})
