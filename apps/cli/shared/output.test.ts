import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printList, printObject } from './output.ts'

test('no line of a table ends with blanks, so that a long cell does not make every line wrap', () => {
  const lines: string[] = []
  const output = { out: (text: string) => lines.push(...text.split('\n')), err: () => assert.fail('it is no mistake') }
  printObject(output, 'table', { token: 'x'.repeat(300), jti: '1' })
  printList(output, 'table', [{ name: 'a' }, { name: 'longer' }], { name: (one) => one.name, last: (one) => one.name })
  assert.deepEqual(lines, [`token  ${'x'.repeat(300)}`, 'jti    1', 'NAME    LAST', 'a       a', 'longer  longer'])
})
