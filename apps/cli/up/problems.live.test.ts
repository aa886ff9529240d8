import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { putResource } from '../testing/commands.ts'

const PLAT = join(import.meta.dirname, '../bin/plat.mjs')

test('plat up warns of a rule that matches nothing at start and after an edit, until it is fixed', async (t) => {
  const dir = tempFolder()
  const rule = (server: string) => ({ rules: [{ name: 'keep', action: 'deny', match: { servers: [server] } }] })
  await putResource(dir, 'agents/default/a.yaml', 'Agent', { image: 'i', tier: 't', policyRef: 'p' })
  await putResource(dir, 'mcpservers/default/notes.yaml', 'MCPServer', { url: 'http://127.0.0.1:1/mcp' })
  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', rule('nots'))
  const flags = ['-listen', '127.0.0.1:0', '-identity-listen', '127.0.0.1:0']
  const plat = spawn(process.execPath, [PLAT, 'up', dir, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] })
  t.after(() => plat.kill('SIGKILL'))
  let text = ''
  for (const stream of [plat.stdout, plat.stderr]) stream.on('data', (bytes) => (text += String(bytes)))

  const line =
    'toolpolicies/default/p.yaml:1: spec.rules[0].match.servers[0]: no server that agents of this policy can call is named'
  await until(
    () => text.includes(`warnings:\n    ${line} "nots"; did you mean "notes"?\n`),
    'the warning on the screen',
  )
  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', rule('note'))
  await until(() => text.includes(`warning: ${line} "note"; did you mean "notes"?\n`), 'the warning of the edit')
  await until(() => text.includes(`fixed: ${line} "nots"; did you mean "notes"?\n`), 'the first warning to be fixed')
  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', rule('notes'))
  await until(() => text.includes(`fixed: ${line} "note"; did you mean "notes"?\n`), 'the second warning to be fixed')
  await until(
    () => /^changed: ToolPolicy default\/p; in force within \d+ s$/m.test(text),
    'the change that is in force',
  )
  await putResource(dir, 'mcpservers/default/more.yaml', 'MCPServer', { url: 'http://127.0.0.1:2/mcp' })
  await until(() => /^added: MCPServer default\/more; in force/m.test(text), 'the new server')
  await writeFile(join(dir, 'gateway.json'), '{"sessionBudgetUSD": 2}')
  const restarted = 'gateway.json is new (sessionBudgetUSD), and is in force: the gateway was started again\n'
  await until(() => text.includes(restarted), 'the file with the key, with which the gateway was started again')
  const changes = text.split('changed: ToolPolicy').length

  const file = join(dir, 'resources/toolpolicies/default/p.yaml')
  await writeFile(file, (await readFile(file, 'utf8')).replace('"deny"', '"deny","when":"arg.x"'))
  const refused = 'toolpolicies/default/p.yaml:1: spec.rules[0].when: unknown variable "arg", did you mean "args"?'
  await until(() => text.includes(`refused, and denied until fixed: ${refused}\n`), 'the refusal with file and line')
  assert.equal(text.split('changed: ToolPolicy').length, changes, 'what is refused is not reported as in force')
  assert.equal(text.split(restarted).length, 2, 'reported once')
  plat.kill('SIGTERM')
  assert.deepEqual(await once(plat, 'exit'), [0, null])
})
