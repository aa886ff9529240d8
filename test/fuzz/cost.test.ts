import assert from 'node:assert/strict'
import { existsSync, globSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type CostTarget, costTarget, nameOf, withRows } from './cost.ts'
import { PARSERS } from './parsers.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Fewest hostile families of a parser, all rows together. */
const MIN_FAMILIES = 2

const files = globSync('**/*cost*.fuzz.ts', { cwd: ROOT, exclude: (name) => path.basename(name) === 'node_modules' })
const targets: readonly CostTarget[] = await Promise.all(
  files.map(async (file) => (await import(pathToFileURL(path.join(ROOT, file)).href)).target),
)
const rows = targets.flatMap((target) => target.rows)

test('every parser and decision that reads foreign bytes has a row with hostile families', () => {
  for (const [parser, file] of Object.entries(PARSERS)) {
    assert.ok(existsSync(path.join(ROOT, file)), `${parser}: ${file} does not exist`)
    const families = rows.filter((row) => row.parser === parser).flatMap((row) => Object.keys(row.families))
    assert.ok(families.length >= MIN_FAMILIES, `${parser}: no row in a target of the group cost`)
  }
})

test('every family of every row makes a text of about the length that it is given', () => {
  for (const row of rows) {
    const size = Math.min(row.limit, 40_000)
    for (const [name, make] of Object.entries(row.families)) {
      const text = make(size)
      assert.equal(typeof text, 'string', `${row.parser}, ${name}`)
      assert.ok(text.length > 0 && text.length < 12 * size, `${row.parser}, ${name}: ${text.length} for ${size}`)
    }
  }
})

const KIB = 1024
const MIB = 1024 * KIB
/** A text of one byte a character, in one piece. */
const families = { text: (n: number) => Buffer.alloc(n, 'a').toString('latin1') }

const faultsOf = async (run: (text: string) => unknown, limit = 40 * KIB) =>
  (await costTarget('test', [{ parser: 'globs', limit, families, run }]).run(60, 1)).failures

/** Uses the processor, by the thread's own clock, so that other processes make no difference. */
function spin(ms: number): void {
  const spent = () => {
    process.cpuUsage()
    const { user, system } = process.threadCpuUsage()
    return user + system
  }
  const start = spent()
  while (spent() - start < ms * 1000);
}

const yielded = () => new Promise((resolve) => setImmediate(resolve))

test('an unbroken stretch, memory that is not linear and nothing else are reported', async () => {
  assert.match(String(await faultsOf((text) => spin((text.length / (40 * KIB)) ** 2 * 60))), /stretch of/)
  assert.match(String(await faultsOf((text) => new Array(Math.floor((text.length / 40) ** 2)).fill(0))), /allocates/)
  const sliced = async () => {
    for (let slice = 0; slice < 10; slice++) {
      spin(5)
      await yielded()
    }
  }
  assert.deepEqual(await faultsOf(sliced), [])
  assert.deepEqual(await faultsOf((text) => text.length), [])
})

test('waiting for another thread is no work', async () => {
  const waiting = (text: string) => new Promise((resolve) => setTimeout(resolve, text.length === 40 * KIB ? 200 : 1))
  assert.deepEqual(await faultsOf(waiting), [])
})

/** Work of `ms` in turns of the event loop. */
async function spinInTurns(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 4) {
    spin(Math.min(4, left))
    await yielded()
  }
}

for (const { limit, power, ms } of [
  { limit: 40 * KIB, power: 1.5, ms: 48 },
  { limit: 40 * KIB, power: 2, ms: 48 },
  { limit: 4 * MIB, power: 1.5, ms: 120 },
  { limit: 16 * MIB, power: 2, ms: 120 },
])
  test(`work in turns that grows with n^${power} is reported for a limit of ${limit} characters`, async () => {
    const run = (text: string) => spinInTurns(ms * (text.length / limit) ** power)
    assert.match(String(await faultsOf(run, limit)), /grows from/)
  })

test('three copies of a large text are not reported, whatever new memory costs', async () => {
  const copies = async ({ length }: string) => {
    for (let copy = 0; copy < 3; copy++) {
      const bytes = Buffer.allocUnsafeSlow(length)
      for (let at = 0; at < length; at += MIB) {
        bytes.fill('a', at, at + MIB)
        await yielded()
      }
    }
  }
  assert.deepEqual(await faultsOf(copies, 40 * MIB), [])
})

test('rows are chosen by parser, part or family', () => {
  const families = { a: String, b: String }
  const target = costTarget('test', [
    { parser: 'globs', part: 'first', limit: 1, families, run: String },
    { parser: 'globs', part: 'second', limit: 1, families, run: String },
  ])
  const chosen = (text: string) =>
    withRows(target, text)?.rows.map((row) => [nameOf(row), Object.keys(row.families).join()]) ?? null
  assert.deepEqual(chosen('first'), [['globs, first', 'a,b']])
  assert.deepEqual(chosen('second, b'), [['globs, second', 'b']])
  assert.deepEqual(chosen('globs')?.length, 2)
  assert.equal(chosen('third'), null)
})
