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
import { requirements } from './requirements.ts'

const citations = collectCitations(path.resolve(import.meta.dirname, '../..'))

test('every id is unique and every citation stands in a test and names a requirement', () => {
  assert.deepEqual(citationFaults(requirements, citations), [])
})

test('no document has fewer cited rows than before', () => {
  assert.deepEqual(Object.keys(floor), DOCUMENTS)
  assert.deepEqual(belowFloor(countShown(requirements, citations), floor), [])
})

test('ids are words joined by dots and say where they stand', () => {
  for (const { id, document, key, heading } of requirements) {
    assert.match(id, /^D[123](?:\.[\w-]+)+$/)
    assert.ok(id.startsWith(`${document}.`) && id.endsWith(`.${key}`) && heading !== '')
  }
})
