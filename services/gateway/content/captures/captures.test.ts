import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { poolTable, systemIds, TestClock } from '@plat/core'
import { type Cipher, KeyServiceError, openCipher } from '@plat/keys'
import { openCapture } from '@plat/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { createEraser } from '../dlp/eraser.ts'
import { Captures } from './captures.ts'

const DAY_MS = 86_400_000

async function setUp(redact = createEraser({}, '')) {
  const root = tempFolder()
  await writeFile(path.join(root, 'key'), randomBytes(32).toString('hex'))
  const key = await openCipher(path.join(root, 'key'))
  const service = { isAway: false, requests: 0 }
  const cipher: Cipher = {
    kid: key.kid,
    async wrap(plain) {
      service.requests++
      if (service.isAway) throw new KeyServiceError('unavailable', 'no response')
      return key.wrap(plain)
    },
    unwrap: (wrapped) => key.unwrap(wrapped),
  }
  const waits: string[] = []
  const clock = new TestClock(Date.now())
  const outcomes: string[] = []
  const faults: unknown[] = []
  const dir = path.join(root, 'captures')
  const captures = new Captures({
    dir,
    cipher,
    retentionDays: 30,
    redact,
    clock,
    ids: systemIds(clock),
    onOutcome: (outcome) => void outcomes.push(outcome),
    onFault: (fault) => void faults.push(fault),
    onWait: ({ message }) => void waits.push(message),
  })
  const add = (text: string, namespace = 'default') => {
    const args = Buffer.from(text)
    const argsSha256 = hash('sha256', args, 'hex')
    captures.add({ namespace, argsSha256, args })
    return path.join(dir, namespace, argsSha256.slice(0, 2), `${argsSha256}.cap`)
  }
  const opened = async (file: string) => {
    const capture = await openCapture(await readFile(file, 'utf8'), cipher)
    return capture === null ? null : Buffer.from(capture.args).toString()
  }
  const files = () => readdir(dir, { recursive: true }).then((names) => names.filter((name) => name.includes('.')))
  return { clock, captures, outcomes, faults, service, waits, dir, add, opened, files }
}

test('arguments are written redacted, readable by the owner only, and once for any number of calls', async () => {
  // Shows D3.captureArgs.dir, D3.captureArgs.key, D3.captureArgs.dlpProfile.
  const { captures, outcomes, add, opened, files } = await setUp()
  const text = '{"to":"ada@example.com","n":12345678901234567890}'
  const file = add(text)
  add(text)
  await captures.close()
  assert.deepEqual(outcomes, ['written', 'written'])
  assert.equal(await opened(file), text.replace('ada@example.com', '[REDACTED:email]'))
  assert.ok(!(await readFile(file, 'utf8')).includes('REDACTED'))
  assert.equal((await stat(file)).mode & 0o077, 0)
  assert.equal((await files()).length, 1)
})

test('arguments that cannot be redacted are dropped, and failed writes are counted as failed', async () => {
  const { captures, outcomes, faults, add, dir } = await setUp()
  add(`{"says":"${'hello world '.repeat(200_000)}"}`)
  add('{"a":1}', '..')
  await captures.close()
  assert.deepEqual([outcomes, faults.length], [['dropped', 'failed'], 1])
  assert.match(String(faults[0]), /namespace/)
  await assert.rejects(readdir(dir), /ENOENT/)
})

test('captures of a namespace at its share of the queue are dropped, while another namespace is captured', async () => {
  const { captures, outcomes, add } = await setUp(() => null)
  const share = poolTable.capture_bytes.shares[0].max / (64 * 1024)
  for (let n = 0; n < share + 10; n++) add(`{"n":${n}}`)
  assert.equal(outcomes.length, 10)
  add('{"other":1}', 'other')
  assert.equal(outcomes.length, 10)
  add(`"${'x'.repeat(17 * 1024 * 1024)}"`, 'third')
  assert.equal(outcomes.length, 11)
  await captures.close()
  assert.equal(outcomes.length, share + 12)
})

test('captures are removed when the same arguments were not sent for the retention time', async () => {
  // Shows D3.captureArgs.retentionDays.
  const { captures, clock, add, files } = await setUp()
  await captures.sweep()
  const [old, again, young] = ['{"n":1}', '{"n":2}', '{"n":3}'].map((text) => add(text))
  await captures.close()
  const before = (clock.now() - 31 * DAY_MS) / 1000
  for (const file of [old, again]) await utimes(file ?? '', before, before)
  add('{"n":2}')
  await captures.close()
  await captures.sweep()
  const names = (await files()).map((name) => path.basename(name)).toSorted()
  assert.deepEqual(names, [again, young].map((file) => path.basename(file ?? '')).toSorted())
})

test('files that disappear during a sweep do not stop it', async () => {
  const { captures, clock, add, files } = await setUp()
  const added = Array.from({ length: 300 }, (_, n) => add(`{"n":${n}}`, `team${n % 2}`))
  await captures.close()
  const before = (clock.now() - 31 * DAY_MS) / 1000
  await Promise.all(added.map((file) => utimes(file, before, before)))
  const sweeping = captures.sweep()
  await Promise.all(added.filter((_, n) => n % 3 === 0).map((file) => rm(file, { force: true })))
  await sweeping
  assert.deepEqual(await files(), [])
})

test('captures wait while the key service fails, and are written afterwards', async () => {
  const { clock, captures, outcomes, faults, service, waits, add, opened } = await setUp()
  service.isAway = true
  const files = ['one', 'two', 'three'].map((text) => add(text))
  await until(() => waits.length > 0, 'the first failure')
  for (const requests of [2, 3]) {
    await until(
      () => service.requests === requests,
      'the next attempt',
      () => clock.advance(1_000),
    )
  }
  assert.deepEqual([outcomes, faults, waits], [[], [], ['no response']])
  service.isAway = false
  await until(
    () => outcomes.length === 3,
    'the captures',
    () => clock.advance(1_000),
  )
  assert.deepEqual(outcomes, ['written', 'written', 'written'])
  assert.deepEqual(await Promise.all(files.map(opened)), ['one', 'two', 'three'])
  await captures.close()
})

test('at the stop, captures that wait for the key service get one more attempt, and those that are lost are counted', async () => {
  const { captures, outcomes, faults, service, waits, add } = await setUp()
  service.isAway = true
  for (const text of ['one', 'two', 'three']) add(text)
  await until(() => waits.length > 0, 'the first failure')
  await captures.close()
  assert.deepEqual(outcomes, ['failed', 'failed', 'failed'])
  assert.deepEqual([service.requests, faults.length], [2, 1])
})
