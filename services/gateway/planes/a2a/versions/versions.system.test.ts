import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startTestAgent } from '@plat/testkit/a2a-agent'
import { startLegacyAgent } from '@plat/testkit/a2a-agent-03'
import { pythonWith } from '@plat/testkit/processes/python'
import { setUpA2a } from '../testing/fixture.ts'

const run = promisify(execFile)
const here = (name: string) => path.join(import.meta.dirname, name)

const python = await pythonWith(here('requirements.txt'))
const skip = 'missing' in python ? python.missing : false

test('the Python client of 0.3 sends to and streams from agents of both versions', { skip }, async (t) => {
  assert.ok('path' in python)
  const agent = await startTestAgent()
  const legacy = await startLegacyAgent()
  t.after(() => Promise.all([agent.close(), legacy.close()]))
  const exposed = { 'default/helper': {}, 'default/old': { endpoint: legacy.url, protocolVersion: '0.3' } }
  const { url, token } = await setUpA2a(t, agent, { exposed })
  const args = [here('legacy.py'), url, token({ scope: 'agents:old agents:helper' }), ...Object.keys(exposed)]
  const { stdout } = await run(python.path, args)
  const results: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, unknown>>>>>> =
    JSON.parse(stdout)
  assert.equal(Object.keys(results).length, 4)
  for (const [name, { hello, work }] of Object.entries(results)) {
    assert.deepEqual(hello?.kinds, ['message'], name)
    assert.deepEqual([work?.state, work?.texts], ['completed', ['a', 'b']], name)
    const streamed = ['task', 'status-update', 'artifact-update', 'artifact-update', 'status-update']
    assert.deepEqual(work?.kinds, name.endsWith('streams') ? streamed : ['task'], name)
  }
})
