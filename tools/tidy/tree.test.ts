import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { machineOwn } from './run.ts'
import { formatFinding, tidyTree } from './tidy.ts'

test('the whole tree is tidy', () => {
  const root = path.resolve(import.meta.dirname, '../..')
  assert.deepEqual(tidyTree(root, machineOwn(root, process.env)).map(formatFinding), [])
})
