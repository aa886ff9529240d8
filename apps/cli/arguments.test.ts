import assert from 'node:assert/strict'
import { test } from 'node:test'
import { doubleDashes, partAtDashes } from './arguments.ts'

test('a Go-style flag gets its second dash, with and without a value', () => {
  assert.deepEqual(doubleDashes(['up', '-listen', ':8080', '-identity-listen=:1']), [
    'up',
    '--listen',
    ':8080',
    '--identity-listen=:1',
  ])
})

test('short flags, double dashes and negative numbers stay as they are', () => {
  assert.deepEqual(doubleDashes(['-o', 'json', '--listen', '-5', '-']), ['-o', 'json', '--listen', '-5', '-'])
})

test('arguments after the first bare -- belong to the child command, flags and further dashes included', () => {
  assert.deepEqual(partAtDashes(['run', '-dir', 'x', '--', 'node', '-print', '--', '1']), {
    own: ['run', '-dir', 'x'],
    child: ['node', '-print', '--', '1'],
  })
  assert.deepEqual(partAtDashes(['up']), { own: ['up'], child: [] })
})
