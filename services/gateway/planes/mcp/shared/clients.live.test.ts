import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startFixture } from '@plat/testkit/mcp/fixture'
import { connectClient, connectOldClient, type SharedFixture, startShared } from '../testing/shared.ts'

const closers: (() => unknown)[] = []
const ends = { after: (end: () => unknown) => void closers.push(end) }
let gateway: SharedFixture

before(async () => {
  const fixtures = await Promise.all([startFixture(), startFixture()])
  for (const fixture of fixtures) closers.push(() => fixture.close())
  const [notes = '', files = ''] = fixtures.map(({ url }) => url)
  gateway = await startShared(ends, { notes, files })
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

/** The methods that the test uses of a client of either version. */
interface Used {
  listTools(): Promise<{ tools: readonly { name: string }[] }>
  listPrompts(): Promise<{ prompts: readonly { name: string }[] }>
  listResources(): Promise<{ resources: readonly { uri: string }[] }>
  listResourceTemplates(): Promise<{ resourceTemplates: readonly { uriTemplate: string }[] }>
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<unknown>
  getPrompt(prompt: { name: string }): Promise<unknown>
  readResource(resource: { uri: string }): Promise<unknown>
  ping(): Promise<unknown>
  close(): Promise<void>
}

const asking = ['test_elicitation', 'test_sampling', 'test_reconnection']
const rounds = ['test_input_required_result_multiple_inputs', 'test_input_required_result_multi_round']

const clients: readonly [string, () => Promise<Used>, tools: readonly string[]][] = [
  ['the official client, legacy', () => connectClient(gateway, 'legacy'), asking],
  ['the official client, auto', () => connectClient(gateway, 'auto'), rounds],
  ['the official client, pinned to 2026-07-28', () => connectClient(gateway, { pin: '2026-07-28' }), rounds],
  ['the SDK of version 1', async () => usedOf(await connectOldClient(gateway)), asking],
]

/** The types of the old SDK have members that exact optional types refuse. */
function usedOf(client: Awaited<ReturnType<typeof connectOldClient>>): Used {
  return {
    listTools: () => client.listTools(),
    listPrompts: () => client.listPrompts(),
    listResources: () => client.listResources(),
    listResourceTemplates: () => client.listResourceTemplates(),
    callTool: (call) => client.callTool(call),
    getPrompt: (prompt) => client.getPrompt(prompt),
    readResource: (resource) => client.readResource(resource),
    ping: () => client.ping(),
    close: () => client.close(),
  }
}

for (const [who, connect, tools] of clients) {
  test(`${who} uses tools, prompts and resources of two servers at one address`, async () => {
    const client = await connect()
    const names = (await client.listTools()).tools.map(({ name }) => name)
    assert.ok(names.includes('notes__test_simple_text') && names.includes('files__test_simple_text'))
    assert.equal(names.filter((name) => name.startsWith('notes__')).length * 2, names.length)
    for (const tool of tools) {
      const result = JSON.stringify(await client.callTool({ name: `files__${tool}`, arguments: {} }))
      assert.match(result, /alice|a thought|closed and taken up|Both steps are done|Thank you for all/, tool)
    }
    const prompts = (await client.listPrompts()).prompts.map(({ name }) => name)
    assert.ok(prompts.includes('notes__test_simple_prompt'))
    assert.match(JSON.stringify(await client.getPrompt({ name: 'notes__test_simple_prompt' })), /simple prompt/)
    const resources = (await client.listResources()).resources.map(({ uri }) => uri)
    assert.ok(resources.includes('mcp://notes/test://static-text'))
    const read = JSON.stringify(await client.readResource({ uri: 'mcp://notes/test://static-text' }))
    assert.match(read, /"uri":"mcp:\/\/notes\/test:\/\/static-text"/)
    const templates = (await client.listResourceTemplates()).resourceTemplates.map(({ uriTemplate }) => uriTemplate)
    assert.ok(templates.includes('mcp://files/test://template/{id}/data'))
    assert.match(
      JSON.stringify(await client.readResource({ uri: 'mcp://files/test://template/7/data' })),
      /Data for ID: 7/,
    )
    // Revision 2026-07-28 has no pings.
    if (tools === asking) await client.ping()
    await client.close()
  })
}

test('the progress of a client reaches the server whose request it is about', async () => {
  const client = await connectClient(gateway, 'legacy')
  const tokens: unknown[] = []
  client.setRequestHandler('sampling/createMessage', async ({ params }, { mcpReq }) => {
    const progressToken = params._meta?.progressToken ?? assert.fail('no token')
    tokens.push(progressToken)
    await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: tokens.length } })
    return { role: 'assistant', model: 'none', content: { type: 'text', text: 'a thought' } }
  })
  // Both servers number their requests alike.
  for (const [at, server] of ['notes', 'files'].entries()) {
    const result = JSON.stringify(await client.callTool({ name: `${server}__test_sampling`, arguments: {} }))
    assert.match(result, new RegExp(`a thought.*, progress ${at + 1}"`), server)
  }
  assert.match(String(tokens), /^notes[^,]*p1\.[\w-]+,files[^,]*p1\.[\w-]+$/)
  // A token of another session, or of no server, ends nothing.
  const foreign = { method: 'notifications/progress', params: { progressToken: String(tokens[0]), progress: 9 } }
  const stranger = await connectClient(gateway, 'legacy', gateway.token('s2'))
  await assert.rejects(stranger.notification(foreign), /no such progressToken/)
  await client.notification({ ...foreign, params: { progressToken: 1, progress: 9 } })
  await Promise.all([client.close(), stranger.close()])
})

test('a client of both eras gets sessions when one of its servers needs them, and none is missing', async (t) => {
  const [both, old] = await Promise.all([startFixture(), startFixture('legacy')])
  t.after(() => Promise.all([both.close(), old.close()]))
  const mixed = await startShared(t, { both: both.url, old: old.url, down: 'http://127.0.0.1:1/mcp' })
  for (const [servers, era] of [
    [['both', 'old', 'down'], 'legacy'],
    [['both', 'down'], 'modern'],
  ] as const) {
    const client = await connectClient(mixed, 'auto', mixed.token('s1', servers))
    assert.equal(client.getProtocolEra(), era)
    const { tools, _meta } = await client.listTools()
    await client.close()
    const names = tools.map(({ name }) => name)
    for (const server of servers)
      assert.equal(
        names.some((name) => name.startsWith(`${server}__`)),
        server !== 'down',
        server,
      )
    assert.match(JSON.stringify(_meta), /"left-out":\[\{"server":"down","error":"upstream_error"|"server":"down"/)
  }
})
