import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { json, type ScriptedUpstream, startScriptedUpstream } from '@plat/testkit/mcp-upstream'
import { until } from '@plat/testkit/until'
import { revoke } from '../revoke/revoke.ts'
import { run } from '../run/run.ts'
import { printed, putResource } from '../testing/commands.ts'
import { startUp, type Up } from '../up/up.ts'
import { approvalsDecide, approvalsList } from './approvals.ts'
import { sessionApprovalsLift, sessionApprovalsList } from './session-approvals.ts'

/** Calls a tool, waits for the file `next`, calls it twice more, waits for the file `last`, and calls it again. Writes each text as a line. */
const PROGRAM = `
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
const [folder] = process.argv.slice(1)
const { mcpServers } = JSON.parse(readFileSync(process.env.PLAT_MCP_CONFIG, 'utf8'))
const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'add', arguments: {} } })
async function call() {
  const response = await fetch(mcpServers.notes.url, { method: 'POST', headers, body })
  const text = await response.text()
  const { result } = JSON.parse(text.includes('data: ') ? text.split('data: ').at(-1) : text)
  appendFileSync(folder + '/texts', result.content[0].text + '\\n')
}
async function untilThere(name) {
  while (!existsSync(folder + '/' + name)) await new Promise((resolve) => setTimeout(resolve, 20))
}
await call()
await untilThere('next')
await call()
await call()
await untilThere('last')
await call()
`
const folder = tempFolder()
const dir = tempFolder()
let up: Up
let upstream: ScriptedUpstream

before(async () => {
  upstream = await startScriptedUpstream()
  upstream.answers(json('{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"added"}]}}'))
  await putResource(dir, 'mcpservers/default/notes.yaml', 'MCPServer', {
    // A label of its results would end the approval for the session.
    ...{ url: upstream.url, trust: 'trusted', dataClass: 'internal' },
  })
  const agent = { image: 'example.com/a:1', tier: 'tier-0', policyRef: 'ask', tools: [{ name: 'notes' }] }
  await putResource(dir, 'agents/default/assistant.yaml', 'Agent', agent)
  const rules = [{ name: 'ask', action: 'require_approval' }]
  await putResource(dir, 'toolpolicies/default/ask.yaml', 'ToolPolicy', { rules })
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
})

after(async () => {
  await up.stop()
  await upstream.close()
})

async function pendingIds(): Promise<readonly string[]> {
  const { text } = await printed((output) => approvalsList({ dir, output: 'json' }, output))
  const found: readonly { readonly id: string }[] = JSON.parse(text)
  return found.map(({ id }) => id)
}

const sessionsText = async (format: 'table' | 'wide' = 'table') =>
  (await printed((output) => sessionApprovalsList({ dir, output: format }, output))).text

function texts(): readonly string[] {
  try {
    return readFileSync(join(folder, 'texts'), 'utf8').trim().split('\n')
  } catch {
    return []
  }
}

test('an approval for a session lets its later calls pass, is listed in 80 columns, and ends when it is lifted', async () => {
  assert.equal(await sessionsText(), 'no approvals for sessions')
  const command = [process.execPath, '--input-type=module', '-e', PROGRAM, folder]
  const running = printed((output) => run({ dir, agent: 'assistant', command, isolate: 'off' }, output))
  await until(async () => (await pendingIds()).length > 0, 'the pending approval')
  const [id = ''] = await pendingIds()
  const target = 'agent:assistant'
  const options = { dir, target, mode: 'revoke', output: 'table', dryRun: true } as const
  const { text } = await printed((output) => revoke(options, output))
  assert.match(
    text,
    /^revoking agent:assistant would end .*, and 1 pending approval; nothing is revoked\n1 session, 0 of /,
  )
  await printed((output) => approvalsDecide({ dir, id, verdict: 'approve', forSession: true, output: 'table' }, output))
  await until(() => texts().length === 1, 'the approved call')
  writeFileSync(join(folder, 'next'), '')
  await until(() => texts().length === 3, 'the later calls')
  assert.deepEqual(texts(), ['added', 'added', 'added'])
  assert.deepEqual(await pendingIds(), [])
  const listed = await sessionsText()
  assert.match(listed, new RegExp(`^${id}  default/assist\\S*  notes/add  \\d+h`, 'm'))
  for (const line of listed.split('\n')) assert.ok(line.length <= 80, line)
  assert.match(await sessionsText('wide'), / ask +\S+ +\d{4}-/)
  const lifted = await printed((output) => sessionApprovalsLift({ dir, id }, output))
  assert.equal(lifted.text, `lifted ${id}`)
  assert.equal(await sessionsText(), 'no approvals for sessions')
  writeFileSync(join(folder, 'last'), '')
  await until(async () => (await pendingIds()).length === 1, 'the call after the end is held again')
  const [again = ''] = await pendingIds()
  await printed((output) => approvalsDecide({ dir, id: again, verdict: 'deny', output: 'table' }, output))
  assert.equal((await running).code, 0)
  assert.match(texts().at(-1) ?? '', /^add was not run: /)
})
