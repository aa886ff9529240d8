import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startFixture } from '@plat/testkit/mcp/fixture'
import { pythonWith } from '@plat/testkit/processes/python'
import { startShared } from '../testing/shared.ts'

const run = promisify(execFile)
const here = (name: string) => path.join(import.meta.dirname, name)

const python = await pythonWith(here('requirements.txt'))
const skip = 'missing' in python ? python.missing : false

const rules = [
  { name: 'no', action: 'deny', match: { servers: ['notes'], tools: ['test_simple_text'] }, reason: 'not here' },
  { name: 'all', action: 'allow' },
]

test('the Python client uses tools, prompts and resources of two servers at one address', { skip }, async (t) => {
  assert.ok('path' in python)
  const [notes, files] = await Promise.all([startFixture(), startFixture('legacy')])
  t.after(() => Promise.all([notes.close(), files.close()]))
  const gateway = await startShared(t, { notes: notes.url, files: files.url }, { rules })
  const { stdout } = await run(python.path, [here('clients.py'), gateway.url, gateway.token()])
  const used = JSON.parse(stdout)
  assert.equal(used.server, 'plat')
  assert.ok(used.tools.includes('files__test_simple_text') && !used.tools.includes('notes__test_simple_text'))
  assert.ok(used.prompts.includes('notes__test_simple_prompt') && used.prompts.includes('files__test_simple_prompt'))
  assert.match(used.called, /simple text response/)
  assert.deepEqual([used.denied[0], /notes__test_simple_text was not run: not here/.test(used.denied[1])], [true, true])
  assert.match(used.prompt, /simple prompt/)
  assert.match(used.uri, /^mcp:\/\/(?:files|notes)\/test:\/\/static-text$/)
  assert.match(used.data, /Data for ID: 7/)
})
