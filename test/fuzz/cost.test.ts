import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { type CostTarget, costTarget, nameOf, withRows } from './cost.ts'
import { PARSERS } from './parsers.ts'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** Fewest hostile families of a parser, all rows together. */
const MIN_FAMILIES = 2

const exclude = (name: string) => path.basename(name) === 'node_modules'
const files = globSync('**/*cost*.fuzz.ts', { cwd: ROOT, exclude })
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

test('targets with rows are in files with cost in their names, where the other tests find them', () => {
  const others = globSync('**/*.fuzz.ts', { cwd: ROOT, exclude }).filter((file) => !files.includes(file))
  assert.ok(others.length > 20)
  for (const file of others)
    assert.ok(
      !readFileSync(path.join(ROOT, file), 'utf8').includes('= costTarget('),
      `${file}: rename it to cost.fuzz.ts`,
    )
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
