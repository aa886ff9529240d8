import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import type { Output, WideFormat } from '../shared/output.ts'
import { status } from '../status/status.ts'
import { printed, putResource } from '../testing/commands.ts'
import { tokenMint } from '../token/mint.ts'
import { startUp, type Up } from '../up/up.ts'
import { sessionsList, sessionTimeline } from './sessions.ts'
import { showCall } from './show.ts'

const PLAT = join(import.meta.dirname, '../bin/plat.mjs')
const SESSION = 'b6f1c1f0-5f0e-4f63-9f0e-6a2b8d4f7a11'

let up: Up
let dir = ''
let decisionId = ''

/** Result of a command in this process; `columns` is the longest line that it printed. */
async function ran(command: (output: Output) => Promise<number>) {
  const { code, text } = await printed(command)
  return { code, out: text, columns: Math.max(...text.split('\n').map((line) => line.length)) }
}

const list = (output: WideFormat = 'table') => ran((to) => sessionsList({ dir, output }, to))
const timeline = (id: string, output: WideFormat = 'table') => ran((to) => sessionTimeline({ dir, id, output }, to))
const show = (id: string, output: WideFormat = 'table') => ran((to) => showCall({ dir, id, output }, to))
const statusText = (output: WideFormat = 'table') => ran((to) => status({ dir, output }, to))

async function call(tool: string): Promise<{ decisionId?: string }> {
  const lines: string[] = []
  const output = { out: (text: string) => void lines.push(text), err() {} }
  await tokenMint({ dir, agent: 'assistant', session: SESSION, scope: ['tools:notes'], format: 'json' }, output)
  const response = await fetch(`${up.env.PLAT_GATEWAY_URL}/mcp/notes`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${JSON.parse(lines.join('\n')).token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: {} } }),
  })
  const text = await response.text()
  return { decisionId: /"decisionId":"([^"]+)"/.exec(text)?.[1] ?? '' }
}

before(async () => {
  dir = tempFolder()
  await putResource(dir, 'agents/default/assistant.yaml', 'Agent', {
    image: 'i',
    tier: 't',
    policyRef: 'p',
    tools: [{ name: 'notes' }],
  })
  await putResource(dir, 'mcpservers/default/notes.yaml', 'MCPServer', {
    url: 'http://127.0.0.1:9/mcp',
    toolPins: { mode: 'off' },
  })
  const reason = 'nothing is read here by any agent, and this sentence is far longer than a cell of the table'
  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', {
    rules: [
      { name: 'all', action: 'allow', match: { servers: ['notes'] } },
      { name: 'a-rule-with-a-name-that-is-long', action: 'deny', match: { tools: ['read'] }, reason },
    ],
  })
  up = await startUp({ dir, listen: '127.0.0.1:0', identityListen: '127.0.0.1:0', log: 'file' })
  decisionId = (await call('read')).decisionId ?? ''
  await call('add')
  const ended = async () => /"kind": "outcome"/.test((await timeline(SESSION, 'json')).out)
  await until(ended, 'the records of the calls')
})

after(() => up.stop())

test('plat sessions lists sessions in 80 columns, with more in wide and all in JSON', async () => {
  const { code, out, columns } = await list()
  assert.deepEqual([code, columns <= 80], [0, true])
  assert.match(out, new RegExp(`^SESSION +CALLS +DENIED +LAST\ndefault/assistant/${SESSION} +2 +1 +\\d+m?s$`))
  assert.match((await list('wide')).out, /USER +TIER +STARTED +PENDING +SPENT +TAINTS/)
  const [one] = JSON.parse((await list('json')).out)
  assert.equal(one.id, `default/assistant/${SESSION}`)
})

test('plat session shows what a session did in 80 columns, by its name or its whole id', async () => {
  const { out, columns } = await timeline(`default/assistant/${SESSION}`)
  assert.ok(columns <= 80, out)
  assert.match(
    out,
    /^TIME +EVENT +TARGET +GROUNDS\n\d\d:\d\d:\d\d +denied policy_denied +notes\/read +default\/p#a-rule/,
  )
  assert.doesNotMatch(out, /^\d\d:\d\d:\d\d +intent/m, 'a call that has ended has one line')
  assert.match((await timeline(SESSION, 'wide')).out, /^\d\d:\d\d:\d\d +intent/m)
  assert.equal((await timeline(SESSION)).out, out)
  const wide = (await timeline(SESSION, 'wide')).out
  assert.match(wide, /default\/p#a-rule-with-a-name-that-is-long/)
  assert.ok(wide.includes(decisionId))
  assert.match(out, /\nview: no: liveView is off, it has ended, or you lack the role$/)
  assert.doesNotMatch((await timeline(SESSION, 'json')).out, /view:/)
  await assert.rejects(timeline('nosuch'), { message: 'the ledger has no session nosuch; see plat sessions' })
})

test('plat show explains a refusal by its decisionId', async () => {
  const { code, out } = await show(decisionId)
  assert.equal(code, 0)
  assert.match(out, new RegExp(`^call +${decisionId}$`, 'm'))
  for (const row of [
    /^target +notes\/read$/m,
    /^action +deny$/m,
    /^rule +a-rule-with-a-name-that-is-long$/m,
    /^reason +nothing is read here/m,
    /^code +policy_denied$/m,
  ])
    assert.match(out, row)
  const records = JSON.parse((await show(decisionId, 'json')).out)
  assert.deepEqual([records.length, records[0].rec.kind], [1, 'decision'])
  await assert.rejects(show('nosuch'), /the ledger has no call nosuch; plat session <id> -o wide lists/)
})

test('plat status shows what runs, and exits with 3 while something is refused', async () => {
  const { code, out } = await statusText()
  assert.equal(code, 0, out)
  for (const row of [
    new RegExp(`^gateway +${up.env.PLAT_GATEWAY_URL} ready$`, 'm'),
    new RegExp(`^identity +${up.env.PLAT_IDENTITY_URL} ready$`, 'm'),
    /^caller +token:admin, the static token, which is not a person$/m,
    /^in force +agents 1, mcpservers 1, toolpolicies 1$/m,
    /^ledger +record \d+, [0-9a-f]{16}$/m,
    /^approvals +0 pending$/m,
    /^revocations +0$/m,
  ])
    assert.match(out, row)
  await putResource(dir, 'mcpservers/default/other.yaml', 'MCPServer', { url: 'http:///x' })
  await putResource(dir, 'mcpservers/default/bad.yaml', 'MCPServer', {
    url: 'https://a.example/mcp',
    auth: { type: 'mtls', mtls: { certSecretRef: { name: 'no' } } },
  })
  const refused = async () => JSON.parse((await statusText('json')).out)
  await until(async () => (await refused()).resources.mcpservers.inForce === 1, 'the refusal in the status')
  const found = await statusText()
  assert.equal(found.code, 3)
  assert.match(found.out, /^in force +agents 1, mcpservers 1 of \d,/m)
  assert.match(found.out, /^refused: mcpservers\/default\/bad\.yaml:1: spec\.auth\.mtls\.certSecretRef: no Secret/m)
})

test('exit codes of processes are those of the page, and NO_COLOR holds', async () => {
  const run = async (...args: readonly string[]) => {
    const done = promisify(execFile)(process.execPath, [PLAT, ...args], { env: { ...process.env, NO_COLOR: '1' } })
    const { code, stdout, stderr } = await done.then(
      (ended) => ({ code: 0, ...ended }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    )
    assert.ok(!(stdout + stderr).includes('\u001b'))
    return { code, out: stdout, err: stderr }
  }
  const version = await run('version', '-o', 'json')
  assert.equal(version.code, 0)
  assert.deepEqual(Object.keys(JSON.parse(version.out)), ['version', 'commit', 'buildDate', 'runtime', 'platform'])
  const nothing = await run('status', '-dir', tempFolder())
  assert.equal(nothing.code, 1)
  assert.match(nothing.err, /^plat: no running plat found in .*; start one with plat up/)
  assert.equal((await run('status', '-o', 'xml')).code, 2)
  assert.match((await run('session', SESSION, '-dir', dir)).out, /^TIME +EVENT/)
})

test('plat session says how the browser of a session can be viewed, and where', async () => {
  await writeFile(join(dir, 'gateway.json'), JSON.stringify({ liveView: { enabled: true } }))
  await up.changes()
  const viewLine = async (id: string) => (await timeline(id)).out.split('\n').at(-1)
  // The gateway is started again with the key, and lists sessions that have called since.
  const isViewed = async () => {
    await call('read').catch(() => null)
    return /^view: watch, control: /.test((await viewLine(SESSION).catch(() => '')) ?? '')
  }
  await until(isViewed, 'the view')
  const id = `default/assistant/${SESSION}`
  const address = `${up.env.PLAT_ADMIN_URL}/console/sessions/${encodeURIComponent(id)}`
  for (const given of [SESSION, id]) assert.equal(await viewLine(given), `view: watch, control: ${address}`)
  await promisify(execFile)(process.execPath, [PLAT, 'revoke', `session:${id}`, '--reason', 'test', '--dir', dir])
  assert.equal(await viewLine(id), 'view: no: liveView is off, it has ended, or you lack the role')
})
