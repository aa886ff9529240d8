import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startOpa } from '@plat/testkit/opa/opa'
import { examples } from './run.ts'

const run = promisify(execFile)

for (const { name, prints } of examples()) {
  test(`example ${name} prints what its comment says, and has at most 40 lines`, async (t) => {
    const file = path.join(import.meta.dirname, `${name}.ts`)
    assert.ok(readFileSync(file, 'utf8').trimEnd().split('\n').length <= 40)
    const env = { ...process.env }
    if (name === 'opa') {
      const opa = await startOpa([path.join(import.meta.dirname, 'opa.rego')], null)
      t.after(() => opa.stop())
      env.OPA_URL = opa.url
    }
    const { stdout, stderr } = await run(process.execPath, [path.join(import.meta.dirname, 'run.ts'), name], { env })
    assert.deepEqual([stdout, stderr], [prints, ''])
  })
}

test('there are twelve examples', () => assert.equal(examples().length, 12))
