import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { tempFolder } from '@plat/testkit/local'
import { EVERYTHING } from '@plat/testkit/mcp/everything'
import { printed } from '../testing/commands.ts'
import { tokenMint } from '../token/mint.ts'
import { startUp } from '../up/up.ts'
import { importFile } from './import.ts'

const FIXTURE = fileURLToPath(import.meta.resolve('@plat/testkit/mcp/stdio-fixture'))

test('a configuration of Claude Desktop with two servers on stdin and stdout runs after the import', async (t) => {
  const dir = tempFolder()
  const file = join(dir, 'claude_desktop_config.json')
  const everything = { command: process.execPath, args: [EVERYTHING], env: { GREETING: 'from the configuration' } }
  const fixture = { command: process.execPath, args: [FIXTURE] }
  await writeFile(file, JSON.stringify({ globalShortcut: '', mcpServers: { everything, fixture } }))
  const imported = await printed((output) =>
    importFile({ format: 'claude-desktop', file, dir, agent: 'a', env: {} }, output),
  )
  assert.equal(imported.code, 0, imported.text)

  const up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  t.after(() => up.stop())
  assert.deepEqual((await up.problems()).refused, [])
  const options = { dir, agent: 'a', session: 's', scope: [], format: 'json' as const }
  const { token } = JSON.parse((await printed((output) => tokenMint(options, output))).text)
  const at = (server: string) => new URL(`${up.env.PLAT_GATEWAY_URL}/mcp/${server}`)
  const requestInit = { headers: { authorization: `Bearer ${token}` } }

  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(at('everything'), { requestInit }))
  const { content } = await client.callTool({ name: 'get-env', arguments: {} })
  assert.match(JSON.stringify(content), /from the configuration/)
  await client.close()
  const old = new OldClient({ name: 'test', version: '1' })
  await Reflect.apply(old.connect, old, [new OldTransport(at('fixture'), { requestInit })])
  assert.ok((await old.listTools()).tools.length > 0)
  await old.close()
})
