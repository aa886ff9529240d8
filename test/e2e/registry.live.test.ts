import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { startFixture } from '@plat/testkit/mcp-fixture'
import { json, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { registryGround } from '../../services/gateway/testing/registered.ts'

const auth = { type: 'none' } as const
const MODERN = '2026-07-28'
const LEGACY = '2025-11-25'

/** A scripted server that answers every call with its name. */
async function named(t: TestContext, name: string) {
  const upstream = await startScriptedUpstream()
  t.after(() => upstream.close())
  upstream.answers(json(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"${name}"}]}}`))
  return upstream
}

test('the official client falls back to what a server is said to speak, and one that insists is told what that is', async (t) => {
  // Shows D3.registry.protocolVersions.
  const fixture = await startFixture()
  t.after(() => fixture.close())
  const ground = await registryGround(t, {
    servers: {
      old: { url: fixture.url, auth, protocolVersions: [LEGACY] },
      both: { url: fixture.url, auth, protocolVersions: [LEGACY, MODERN] },
    },
  })
  const connected = async (server: string, mode: 'auto' | { pin: typeof MODERN }) => {
    const token = ground.issuer.token({ scope: `tools:${server}` })
    const requestInit = { headers: { authorization: `Bearer ${token}` } }
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
    t.after(() => client.close())
    await client.connect(new StreamableHTTPClientTransport(new URL(`${ground.url}/mcp/${server}`), { requestInit }))
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

test('the registry is read again under load: a server moves, one comes, one goes, and no call fails', async (t) => {
  const [first, second] = [await named(t, 'first'), await named(t, 'second')]
  const ground = await registryGround(t, {
    servers: { notes: { url: first.url, auth }, gone: { url: first.url, auth } },
  })
  const token = ground.issuer.token()
  let going = true
  const seen: string[] = []
  const callers = Array.from({ length: 4 }, async () => {
    while (going) seen.push((await ground.call('notes', token)).text)
  })
  await until(() => seen.length > 20, 'calls of the first server')
  assert.equal((await ground.call('gone')).error, null)
  assert.equal((await ground.call('fresh')).error, 'unknown_server')
  await ground.publish({ notes: { url: second.url, auth }, fresh: { url: second.url, auth } })
  await until(() => seen.at(-1)?.includes('second') === true, 'the new registry')
  assert.equal((await ground.call('fresh')).error, null)
  assert.equal((await ground.call('gone')).error, 'unknown_server')
  await ground.publish('{"version":1,"servers":{"default/notes":{"url":"http://nowhere"')
  await until(async () => (await ground.written()).includes('upstreamsFile is refused'), 'the broken file to be seen')
  assert.match((await ground.call('notes')).text, /second/)
  going = false
  await Promise.all(callers)
  assert.deepEqual(
    seen.filter((text) => !text.includes('first') && !text.includes('second')),
    [],
  )
})
