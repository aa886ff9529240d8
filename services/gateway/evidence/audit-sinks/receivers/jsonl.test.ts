import assert from 'node:assert/strict'
import { appendFile, readFile, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { tempFolder } from '@plat/testkit/local'
import { recordOf, sinkConfig } from '../testing/fixture.ts'
import { jsonlReceiver } from './jsonl.ts'

const records = [0, 1, 2].map((seq) => recordOf({ kind: 'outcome' }, seq))

test('a file gets the ledger lines, is readable by its owner only, and may be moved away at any time', async () => {
  // Shows D3.auditSinks.type.jsonl, D3.auditSinks.path, D3.auditSinks.format.default.
  const path = join(tempFolder(), 'deep', 'down', 'audit.jsonl')
  const to = jsonlReceiver(sinkConfig({ type: 'jsonl', path }))
  const deliver = () => to.deliver(records.map((record) => ({ record, text: to.write(record) })))
  const whole = records.map(({ text }) => `${text}\n`).join('')
  assert.deepEqual(await deliver(), { kind: 'accepted' })
  await deliver()
  assert.equal(await readFile(path, 'utf8'), whole + whole)
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  await rename(path, `${path}.1`)
  await deliver()
  assert.equal(await readFile(path, 'utf8'), whole)
})

test('a truncated line is terminated, and repeated as a whole', async () => {
  const path = join(tempFolder(), 'audit.jsonl')
  const to = jsonlReceiver(sinkConfig({ type: 'jsonl', path, format: 'cef' }))
  const [record] = records
  assert.ok(record !== undefined)
  await appendFile(path, 'CEF:0|pl')
  await to.deliver([{ record, text: to.write(record) }])
  assert.equal(await readFile(path, 'utf8'), `CEF:0|pl\n${to.write(record)}\n`)
})
