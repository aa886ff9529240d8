import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { test } from 'node:test'

const BIN = path.join(import.meta.dirname, 'bin/plat.mjs')

test('a command whose output is no longer read ends without a message', async () => {
  const child = spawn(process.execPath, [BIN, 'schema', 'agent'], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  let problem = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    problem += text
  })
  const [code, signal] = await once(child, 'close')
  assert.deepEqual([code, signal, problem], [0, null, ''])
})
