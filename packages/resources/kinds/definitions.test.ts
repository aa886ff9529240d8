import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { definitionFiles, definitionOf } from './definitions.ts'

const FOLDER = path.resolve(import.meta.dirname, '../../../deploy/crds')

test('deploy/crds matches the kinds; node packages/resources/kinds/definitions.ts regenerates it', () => {
  const files = definitionFiles()
  assert.deepEqual(readdirSync(FOLDER).toSorted(), [...files.keys()].toSorted())
  for (const [name, text] of files) assert.equal(readFileSync(path.join(FOLDER, name), 'utf8'), text, name)
})

test('a definition written as YAML parses to itself, in both versions', () => {
  for (const version of ['1.1', '1.2'] as const) {
    const [, text = ''] = [...definitionFiles()].find(([name]) => name.startsWith('agents.')) ?? []
    assert.deepEqual(parse(text, { version }), JSON.parse(JSON.stringify(definitionOf('Agent'))))
  }
})

test('a CustomResourceDefinition has a structural schema', () => {
  const text = [...definitionFiles().values()].join('')
  assert.doesNotMatch(text, /additionalProperties: false|\$ref|uniqueItems|oneOf|\(\?[=!<]/)
})
