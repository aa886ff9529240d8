import assert from 'node:assert/strict'
import { test } from 'node:test'
import { doubleDashes } from './arguments.ts'

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

test('what follows a bare -- belongs to the child command', () => {
  assert.deepEqual(doubleDashes(['run', '-dir', 'x', '--', 'node', '-print', '1']), [
    'run',
    '--dir',
    'x',
    '--',
    'node',
    '-print',
    '1',
  ])
})
