import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'

const ROOT = path.resolve(import.meta.dirname, '../..')

/** The file of a test, and a part of its title as the source has it. */
export type TestPlace = readonly [file: string, title: string]

/** Fails unless there is a test at this place. Returns the source of its file. */
export function assertTest(what: string, [file, title]: TestPlace): string {
  const source = readFileSync(path.join(ROOT, file), 'utf8')
  const isThere = source.split('\n').some((line) => /^\s*test\(/.test(line) && line.includes(title))
  assert.ok(title !== '' && isThere, `${what}: ${file} has no test "${title}"`)
  return source
}
