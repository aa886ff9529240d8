import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stringify } from 'yaml'
import { onScreen } from './output.ts'
import { printList, printObject, printWideList } from './print.ts'

test('no line of a table ends with blanks, so that a long cell does not make every line wrap', () => {
  const lines: string[] = []
  const output = {
    out: (text: string) => lines.push(...text.split('\n')),
    err: () => assert.fail('it is not a mistake'),
  }
  printObject(output, 'table', { token: 'x'.repeat(300), jti: '1' })
  printList(output, 'table', [{ name: 'a' }, { name: 'longer' }], { name: (one) => one.name, last: (one) => one.name })
  assert.deepEqual(lines, [`token  ${'x'.repeat(300)}`, 'jti    1', 'NAME    LAST', 'a       a', 'longer  longer'])
})

test('a table of long cells fits into 80 columns, and its longest cells are cut to the same length', () => {
  const lines: string[] = []
  const output = {
    out: (text: string) => lines.push(...text.split('\n')),
    err: () => assert.fail('it is not a mistake'),
  }
  const item = { id: '12:00:00', event: 'completed', target: 'everything/'.repeat(5), grounds: 'x'.repeat(1_000_000) }
  const columns = {
    id: (one: typeof item) => one.id,
    event: (one: typeof item) => one.event,
    target: (one: typeof item) => one.target,
    grounds: (one: typeof item) => one.grounds,
  }
  printWideList(output, 'table', [item], { columns, further: {} })
  assert.deepEqual(lines, [
    `ID        EVENT      ${'TARGET'.padEnd(29)}  GROUNDS`,
    `12:00:00  completed  ${'everything/'.repeat(5).slice(0, 28)}…  ${'x'.repeat(27)}…`,
  ])
})

test('text of agents in JSON and YAML cannot control a terminal, and files get it unchanged', () => {
  const record = {
    tool: 'a\u009b2Jb',
    user: '\u202egnp.exe',
    reason: 'x\u001b[2J\u007f',
    tag: '\u{e0041}',
    name: 'é 猫',
  }
  for (const text of [JSON.stringify(record), stringify(record)]) {
    const printed = onScreen(text, { isTTY: true })
    assert.doesNotMatch(printed.replaceAll('\n', ''), /[\p{Cc}\p{Cf}]/u)
    assert.match(printed, /a\\u009b2Jb/)
    assert.match(printed, /é 猫/)
    assert.equal(onScreen(text, {}), text)
  }
  assert.deepEqual(JSON.parse(onScreen(JSON.stringify(record), { isTTY: true })), record)
})
