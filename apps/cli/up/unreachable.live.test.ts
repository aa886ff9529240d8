import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { isObject } from '@plat/core'
import { closed, freePort, listening, tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { showCall } from '../sessions/show.ts'
import { printed, putResource } from '../testing/commands.ts'
import { tokenMint } from '../token/mint.ts'
import { startUp } from './up.ts'

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'client', version: '1' } },
}

test('a server that cannot be reached is in the terminal, and plat show has its failed initialize', async (t) => {
  const dir = tempFolder()
  const port = await freePort()
  await putResource(dir, 'mcpservers/default/notes.yaml', 'MCPServer', { url: `http://127.0.0.1:${port}/mcp` })
  await putResource(dir, 'agents/default/assistant.yaml', 'Agent', { policyRef: 'all', tools: [{ name: 'notes' }] })
  await putResource(dir, 'toolpolicies/default/all.yaml', 'ToolPolicy', { rules: [{ name: 'a', action: 'allow' }] })
  const lines: string[] = []
  const options = { dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' } as const
  const up = await startUp(options, (line) => lines.push(line))
  t.after(() => up.stop())
  const given = { dir, agent: 'assistant', session: 's', scope: [], format: 'token' } as const
  const { text: token } = await printed((output) => tokenMint(given, output))
  const initialize = async () => {
    const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/notes`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(INITIALIZE),
    })
    return JSON.parse(await response.text())
  }

  const { error } = await initialize()
  assert.match(error.message, /notes cannot be reached/)
  assert.deepEqual(lines, [
    'warning: the server cannot be reached: its calls fail (server: default/notes, reason: it does not accept connections)',
  ])
  assert.ok(isObject(error.data) && typeof error.data.decisionId === 'string')
  const id = error.data.decisionId
  let printout = ''
  await until(async () => {
    printout = await printed((output) => showCall({ dir, id, output: 'table' }, output)).then(
      ({ text }) => text,
      () => '',
    )
    return printout !== ''
  }, 'the record of the call')
  assert.match(printout, /^code +upstream_error$/m)
  assert.match(printout, /^result +failed$/m)

  const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'notes', version: '1' } }
  const server = createServer((_request, response) => {
    const head = { 'content-type': 'application/json' }
    response.writeHead(200, head).end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  })
  await listening(server, '127.0.0.1', port)
  t.after(() => closed(server))
  assert.equal((await initialize()).result.serverInfo.name, 'notes')
  assert.equal(lines.at(-1), 'fixed: the server can be reached again (server: default/notes)')
})
