import assert from 'node:assert/strict'
import { test } from 'node:test'
import Type from 'typebox'
import { withFilesBelow } from './files.ts'

test('relative paths of files are below the folder, and nothing else changes', () => {
  const file = () => Type.String({ file: 'warning' })
  const schema = Type.Object({
    key: file(),
    text: Type.String(),
    routes: Type.Record(Type.String({ pattern: '^a' }), Type.Object({ key: file() })),
    list: Type.Array(Type.Object({ key: file() })),
  })
  const value = {
    ...{ key: 'a/b', text: 'a/b', unknown: 'a/b' },
    routes: { a1: { key: '.plat/x' } },
    list: [{ key: '/etc/x' }, { key: '' }, { key: 'c' }],
  }
  assert.deepEqual(withFilesBelow(schema, value, '/dir'), {
    ...{ key: '/dir/a/b', text: 'a/b', unknown: 'a/b' },
    routes: { a1: { key: '/dir/.plat/x' } },
    list: [{ key: '/etc/x' }, { key: '' }, { key: '/dir/c' }],
  })
  assert.deepEqual(withFilesBelow(schema, { key: 3, routes: 'a', list: {} }, '/dir'), { key: 3, routes: 'a', list: {} })
})
