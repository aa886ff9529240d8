import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { type GatewayProcess, startGatewayProcess } from '@plat/testkit/gateway'
import { passed } from '@plat/testkit/mcp/denial'
import { startEverything } from '@plat/testkit/mcp/everything'
import { until } from '@plat/testkit/until'
import { startNotes } from '../../examples/quickstart/notes/server.ts'

let gateway: GatewayProcess
const closers: (() => unknown)[] = []

before(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'plat-'))
  closers.push(() => rm(dir, { recursive: true }))
  const notes = await startNotes({ port: 0, dir })
  closers.push(() => notes.close())
  const everything = await startEverything()
  closers.push(() => everything.close())
  gateway = await startGatewayProcess({
    servers: { notes: notes.url, everything: everything.url },
    denied: ['delete_note'],
  })
  closers.push(() => gateway.close())
})

after(async () => {
  for (const close of closers.reverse()) await close()
})

interface Connected {
  listTools(): Promise<{ tools: { name: string }[] }>
  callTool(call: { name: string; arguments: Record<string, unknown> }): Promise<{ content?: unknown }>
  close(): Promise<void>
}

type Connect = (server: string) => Promise<Connected>

const request = () => ({ requestInit: { headers: { authorization: `Bearer ${gateway.token}` } } })
const address = (server: string) => new URL(`${gateway.url}/mcp/${server}`)

function current(mode: 'legacy' | 'auto' | { pin: '2026-07-28' }): Connect {
  return async (server) => {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } })
    await client.connect(new StreamableHTTPClientTransport(address(server), request()))
    return client
  }
}

const old: Connect = async (server) => {
  const client = new OldClient({ name: 'test', version: '1' })
  const transport = new OldTransport(address(server), request())
  // The old SDK's own types disagree about optional members; connecting by name keeps the rest checked.
  await Reflect.apply(client.connect, client, [transport])
  return {
    listTools: () => client.listTools(),
    callTool: async (call) => {
      const { content, isError, _meta } = await client.callTool(call)
      return { content, isError, _meta }
    },
    close: () => client.close(),
  }
}

const clients: readonly [string, Connect, everything: boolean][] = [
  ['the official client, legacy', current('legacy'), true],
  ['the official client, auto', current('auto'), true],
  ['the official client, pinned to 2026-07-28', current({ pin: '2026-07-28' }), false],
  ['the SDK of version 1', old, true],
]

for (const [who, connect, legacy] of clients) {
  test(`${who} lists and calls the notes server; a denied tool is hidden and refused`, async () => {
    const client = await connect('notes')
    const names = (await client.listTools()).tools.map((tool) => tool.name)
    assert.deepEqual(names, ['list_notes', 'read_note', 'add_note'])
    const name = who.replace(/[^a-z0-9]/g, '-')
    await client.callTool({ name: 'add_note', arguments: { name, text: 'milk' } })
    const read = await client.callTool({ name: 'read_note', arguments: { name } })
    assert.match(JSON.stringify(read.content), /milk/)
    await assert.rejects(passed(client.callTool({ name: 'delete_note', arguments: { name } })), /denied by the test/)
    await client.close()
  })

  if (!legacy) continue
  test(`${who} lists and calls server-everything`, async () => {
    const client = await connect('everything')
    const names = (await client.listTools()).tools.map((tool) => tool.name)
    assert.ok(names.includes('echo'), names.join())
    const echoed = await client.callTool({ name: 'echo', arguments: { message: 'through the gateway' } })
    assert.match(JSON.stringify(echoed.content), /through the gateway/)
    await client.close()
  })
}

test('the ledger has intent and outcome of every allowed call, and one record of every denial', async () => {
  // Outcomes are appended, not awaited, and a client's own stream ends a moment after the client.
  let counts = await countKinds()
  await until(
    () => counts.intent === counts.outcome,
    'an outcome for every intent',
    async () => {
      counts = await countKinds()
    },
  )
  assert.equal(counts.intent, counts.outcome)
  assert.equal(counts.decision, clients.length)
})

async function countKinds(): Promise<Record<'intent' | 'outcome' | 'decision', number>> {
  const kinds = (await gateway.ledger()).map((line) => /"kind":"([a-z]+)"/.exec(line)?.[1])
  const count = (kind: string) => kinds.filter((one) => one === kind).length
  return { intent: count('intent'), outcome: count('outcome'), decision: count('decision') }
}
