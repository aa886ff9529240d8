import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { openCipher } from '@plat/keys'
import { sealCapture } from '@plat/ledger'
import { tempFolder } from '@plat/testkit/local'
import { CommandError } from '../shared/output.ts'
import { auditArguments } from './arguments.ts'

test('captured arguments are shown only with the right key', async () => {
  const dir = tempFolder()
  const [key, other, file] = [join(dir, 'key'), join(dir, 'other'), join(dir, 'x.cap')]
  for (const name of [key, other]) await writeFile(name, randomBytes(32).toString('base64'))
  const capture = { namespace: 'default', argsSha256: 'a'.repeat(64), args: Buffer.from('{"says":"hi"}') }
  await writeFile(file, await sealCapture(capture, { cipher: await openCipher(key), random: randomBytes }))
  const printed: string[] = []
  const complained: string[] = []
  const output = { out: (text: string) => void printed.push(text), err: (text: string) => void complained.push(text) }
  assert.equal(await auditArguments({ file, key, output: 'table' }, output), 0)
  assert.equal(await auditArguments({ file, key, output: 'json' }, output), 0)
  assert.equal(printed[0], '{"says":"hi"}')
  assert.deepEqual(JSON.parse(printed[1] ?? ''), { ...capture, args: '{"says":"hi"}' })
  assert.equal(await auditArguments({ file, key: other, output: 'table' }, output), 1)
  assert.match(complained.join(), /under another key/)
  const missing = [
    { file: join(dir, 'none'), key },
    { file, key: join(dir, 'none') },
  ]
  for (const one of missing) {
    await assert.rejects(auditArguments({ ...one, output: 'table' }, output), (error) => error instanceof CommandError)
  }
})
