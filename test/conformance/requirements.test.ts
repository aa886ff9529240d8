import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import {
  belowFloor,
  citationFaults,
  collectCitations,
  countShown,
  DOCUMENTS,
} from '../../tools/requirements/collect.ts'
import floor from './floor.json' with { type: 'json' }
import { readRows, requirements } from './requirements.ts'

const citations = collectCitations(path.resolve(import.meta.dirname, '../..'))

test('every ID is unique, and every citation is in a test and names a requirement', () => {
  assert.deepEqual(citationFaults(requirements, citations), [])
})

test('no document has fewer cited rows than before', () => {
  assert.deepEqual(Object.keys(floor), DOCUMENTS)
  assert.deepEqual(belowFloor(countShown(requirements, citations), floor), [])
})

test('a row of a page without an id of that page is refused by file and line', () => {
  for (const row of ['| iss | The issuer |', '| `D2.claim.iss` | The issuer |', '| `D1.claim` | The claims |'])
    assert.throws(() => readRows('D1', `# Page\n\n${row}\n`), /^Error: docs\/spec\/broker-api\.md:3: /)
})
