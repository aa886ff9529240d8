import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toolsScopeOf } from './tools-scope.ts'

test('the scope is that of the server, whichever came before', () => {
  const servers = ['', 'notes', 'notes', 'note', 'notes', '']
  assert.deepEqual(servers.map(toolsScopeOf), [
    'tools:',
    'tools:notes',
    'tools:notes',
    'tools:note',
    'tools:notes',
    'tools:',
  ])
})
